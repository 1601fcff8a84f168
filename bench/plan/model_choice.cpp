#include "bench/plan/model_choice.hpp"

#include "bench/core/error.hpp"
#include "bench/core/model_catalog.hpp"
#include "bench/core/nearest.hpp"
#include "bench/plan/setting_values.hpp"

#include <filesystem>
#include <fstream>

namespace bench {
namespace {

bool is_file(const std::string& text) {
  return text.ends_with(".pt") || text.ends_with(".pth") || text.ends_with(".ts") ||
         text.find('/') != std::string::npos;
}

// torch.jit.save writes a zip archive; so does torch.save, which only LibTorch tells apart later.
void require_archive(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) {
    throw UsageError("--model: no such file '" + path + "'");
  }
  std::ifstream file(path, std::ios::binary);
  char magic[2] = {};
  file.read(magic, sizeof magic);
  if (!file || magic[0] != 'P' || magic[1] != 'K') {
    throw UsageError("--model: '" + path +
                     "' is not a TorchScript file; expected one that torch.jit.save wrote");
  }
}

}  // namespace

ModelSpec choose_model(const std::string& name_or_file, const Settings& settings) {
  ModelSpec spec;
  spec.input_shape = settings.input_shape;
  spec.input_dtype = settings.input_dtype;
  spec.classes = settings.classes;
  if (is_file(name_or_file)) {
    require_archive(name_or_file);
    if (spec.input_shape.empty()) {
      throw UsageError("--model: '" + name_or_file +
                       "' needs the shape of one sample, e.g. --input 3x224x224");
    }
    spec.file = std::filesystem::absolute(name_or_file).lexically_normal().string();
    spec.name = case_name_part(std::filesystem::path(name_or_file).stem().string());
    return spec;
  }
  if (find_model(name_or_file) == nullptr) {
    std::vector<std::string> known;
    for (const ModelEntry& entry : model_catalog()) known.emplace_back(entry.name);
    throw UsageError("--model: " + unknown_name_message("model", name_or_file, known));
  }
  spec.name = name_or_file;
  return spec;
}

}  // namespace bench
