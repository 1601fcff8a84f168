// Every rank writes the checkpoint to one path. The order that a shared file system leaves to
// chance is forced here: rank 0 has finished and reads while rank 1 is half way through.
#include "training/models/layers.hpp"
#include "training/pitfalls/state_experiments.hpp"

#include <torch/serialize.h>

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace bench::training {
namespace {

// One path for all ranks, which share their parent process.
std::string shared_path(const Lab& lab) {
  return (std::filesystem::temp_directory_path() /
          ("bench-pitfall-save-" + std::to_string(::getppid()) + (lab.cured() ? "-cured" : "") +
           ".pt"))
      .string();
}

std::string checkpoint_of(const Model& model) {
  torch::serialize::OutputArchive archive;
  for (const NamedTensor& parameter : model.parameters())
    archive.write(parameter.name, parameter.tensor.detach().cpu());
  std::ostringstream out;
  archive.save_to(out);
  return out.str();
}

void write_file(const std::string& path, std::string_view bytes) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << bytes;
}

}  // namespace

void save_on_every_rank(Lab& lab) {
  const auto model = lab.model(linear({.in = 256, .out = 256}), lab.seed());
  const auto ddp = lab.wrap(*model);
  const std::string path = shared_path(lab);
  const std::string checkpoint = checkpoint_of(*model);
  const bool writes = lab.rank() == 0 || !lab.cured();
  Json& evidence = lab.evidence();
  evidence["paths_written"] = writes ? Json::array({"checkpoint.pt"}) : Json::array();
  evidence["bytes_written"] = writes ? checkpoint.size() : 0;
  evidence["keys_loaded"] = 0;
  if (lab.rank() == 0) write_file(path, checkpoint);
  lab.all_reduce_sum(0);
  if (lab.rank() != 0 && writes)
    write_file(path, std::string_view(checkpoint).substr(0, checkpoint.size() / 2));
  lab.all_reduce_sum(0);
  if (lab.rank() == 0)
    lab.attempt([&] {
      torch::serialize::InputArchive archive;
      archive.load_from(path);
      evidence["keys_loaded"] = archive.keys().size();
    });
  lab.all_reduce_sum(0);
  if (lab.rank() == 0) std::remove(path.c_str());
}

}  // namespace bench::training
