#include "diagnose/driver/assemble.hpp"

#include "diagnose/driver/added_paths.hpp"
#include "diagnose/driver/looked_up_imports.hpp"
#include "diagnose/model/shown_commands.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <unordered_map>

namespace bench::diagnose {
namespace {

constexpr std::size_t kMaxBeside = 32;  // files looked through beside a script
constexpr int kMaxParents = 3;          // directories above the script tried for absolute imports

// Packages that are never files of the user's own, sorted.
// clang-format off
constexpr auto kExternal = std::to_array<std::string_view>({
    "PIL", "__future__", "abc", "accelerate", "albumentations", "apex", "argparse", "ast",
    "collections", "contextlib", "copy", "csv", "cv2", "dataclasses", "datetime",
    "deepspeed", "einops", "enum", "functools", "gc", "glob", "h5py", "horovod",
    "huggingface_hub", "hydra", "importlib", "inspect", "io", "itertools", "json", "lightning",
    "logging", "math", "matplotlib", "multiprocessing", "numpy", "omegaconf", "os", "pandas",
    "pathlib", "peft", "pickle", "platform", "pprint", "psutil", "pytest", "pytorch_lightning",
    "random", "re", "scipy", "setuptools", "shutil", "signal", "sklearn", "socket", "string",
    "subprocess", "sys", "tempfile", "tensorboard", "tensorboardX", "termcolor", "threading",
    "time", "timeit", "timm", "tokenizers", "torch", "torchaudio", "torchmetrics", "torchtext",
    "torchvision", "tqdm", "traceback", "transformers", "trl", "types", "typing", "unittest",
    "uuid", "wandb", "warnings", "yaml"});
// clang-format on

bool is_external(std::string_view top) {
  return std::binary_search(kExternal.begin(), kExternal.end(), top);
}

bool inside(const std::string& directory, const std::string& top) {
  if (top.empty() || top == ".") return true;
  std::string prefix = top;
  if (!prefix.ends_with('/')) prefix += '/';
  return directory.starts_with(prefix);
}

}  // namespace

bool links_out_of(const std::string& path, const std::string& top) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path real = fs::canonical(path, error);
  if (error) return false;
  const fs::path root = fs::canonical(top.empty() ? "." : top, error);
  if (error) return false;
  const auto [end, rest] = std::mismatch(root.begin(), root.end(), real.begin(), real.end());
  return end != root.end();
}

namespace {

// a/b.py and a/b/__init__.py below the directory for a.b, a/__init__.py for what is left of ".".
void add_files(const std::string& directory, std::string_view import, const std::string& top,
               std::vector<std::string>& out) {
  if (!inside(directory.empty() ? "./" : directory, top) && !directory.empty()) return;
  std::string stem = directory + std::string(import);
  std::replace(stem.begin() + static_cast<std::ptrdiff_t>(directory.size()), stem.end(), '.', '/');
  if (!import.empty()) out.push_back(stem + ".py");
  out.push_back(stem + (import.empty() ? "__init__.py" : "/__init__.py"));
}

}  // namespace

bool is_external_import(std::string_view import) {
  return is_external(import.substr(0, import.find('.')));
}

std::vector<std::string> candidates_in(const std::string& directory, std::string_view import,
                                       const std::string& top) {
  std::vector<std::string> out;
  add_files(directory, import, top, out);
  return out;
}

std::vector<std::string> candidates_beside(const std::string& importer, std::string_view import,
                                           const std::string& top) {
  std::vector<std::string> out;
  const std::size_t dots = std::min(import.find_first_not_of('.'), import.size());
  std::string base = directory_of(importer);
  for (std::size_t up = 1; up < dots; ++up) base = parent_of(base);
  add_files(base, import.substr(dots), top, out);
  return out;
}

std::vector<std::string> candidates_above(const std::string& script, std::string_view import,
                                          const std::string& top) {
  std::vector<std::string> out;
  if (import.starts_with('.')) return out;
  // Below src/ stand the packages of a project that is installed from there.
  const std::string_view package = import.substr(0, import.find('.'));
  const bool may_be_installed = package != "datasets" && package != "evaluate";
  for (const char* folder : {"", "src/"}) {
    if (*folder != '\0' && !may_be_installed) break;
    std::string above = directory_of(script);
    for (int up = 0; up <= kMaxParents; ++up) {
      add_files(above + folder, import, top, out);
      if (above.empty()) break;
      above = parent_of(above);
    }
  }
  return out;
}

std::vector<std::string> import_candidates(const std::string& importer, const std::string& script,
                                           const std::string& import, const std::string& top) {
  if (is_external_import(import)) return {};
  std::vector<std::string> out = candidates_beside(importer, import, top);
  for (std::string& path : candidates_above(script, import, top))
    if (std::find(out.begin(), out.end(), path) == out.end()) out.push_back(std::move(path));
  return out;
}

std::vector<std::string> directories_above(const std::string& file, const std::string& top) {
  std::vector<std::string> out;
  std::string directory = directory_of(file);
  while (static_cast<int>(out.size()) <= kMaxParents &&
         inside(directory.empty() ? "./" : directory, top)) {
    out.push_back(directory);
    if (directory.empty()) break;
    directory = parent_of(directory);
  }
  return out;
}

bool any_script_in(const std::string& directory, const std::string& but, const std::string& top,
                   const Lister& list, const ModuleCache& cache, const TextTest& accepts) {
  std::size_t left = kMaxBeside;
  for (const DirectoryEntry& entry : list(directory)) {
    const std::string path = directory + entry.name;
    if (entry.is_directory || path == but || type_of(path) != FileType::python) continue;
    if (left-- == 0) return false;
    if (entry.is_link && links_out_of(path, top)) continue;
    if (const auto text = cache.read(path); text && accepts(*text)) return true;
  }
  return false;
}

namespace {

// What the project asks for, where the program itself can run with it.
NewestVersions lowest(NewestVersions out, const std::vector<const Module*>& modules,
                      ModuleCache& cache) {
  for (const Module* module : modules) {
    const NewestVersions here = cache.versions_of(*module);
    for (const VersionOf field : kVersionFields) out.*field = std::min(out.*field, here.*field);
  }
  return out;
}

// The script and the files that it imports, nearest first.
class Gatherer {
 public:
  Gatherer(const std::string& script, const ProgramContext& context, ModuleCache& cache,
           ProgramInput& input, AssembledProgram& out)
      : script_(script), context_(context), cache_(cache), input_(input), out_(out) {}

  void gather(const std::shared_ptr<const Module>& root) {
    known_.emplace(script_, root.get());
    out_.keep_alive.push_back(root);
    follow();
    // What is found on a path that the program adds may add one, too.
    for (int round = 0; round < kMaxRounds; ++round) {
      const auto added = added_directories(out_.keep_alive, script_, context_.top);
      if (added.size() == directories_.size() || !look_in(added)) break;
      follow();
    }
    for (const auto& module : out_.keep_alive) input_.modules.push_back(module.get());
  }

 private:
  static constexpr int kMaxRounds = 3;

  void follow() {
    for (; followed_ < out_.keep_alive.size(); ++followed_) {
      const auto module = out_.keep_alive[followed_];
      const auto targets = cache_.targets_of(*module, script_, context_.top);
      auto& imports = input_.import_targets[module.get()];
      for (std::size_t each = 0; each < targets->size(); ++each)
        if (const Module* const target = module_at((*targets)[each]))
          imports.emplace(module->imports()[each], target);
      follow_looked_up(*module);
    }
  }

  // All files that import_module("models." + name) may mean: which one it is the run says.
  void follow_looked_up(const Module& module) {
    const auto looked_up = looked_up_imports(module);
    if (looked_up.empty() || !context_.list) return;
    std::vector<std::string> starts = directories_above(script_, context_.top);
    starts.insert(starts.begin(), directory_of(module.path()));
    for (const auto& [call, pattern] : looked_up)
      for (const std::string& start : starts) {
        const auto names = modules_like(pattern, start, context_.list);
        for (const std::string& name : names)
          if (const Module* const target = module_at(cache_.file_in(start, name, context_.top)))
            input_.looked_up[{&module, call}].push_back(target);
        if (!names.empty()) break;
      }
  }

  // Null where there is no such file, or no more are read.
  const Module* module_at(const std::string& path) {
    if (path.empty()) return nullptr;
    if (const auto known = known_.find(path); known != known_.end()) return known->second;
    if (out_.keep_alive.size() >= context_.most_modules) {
      out_.is_cut = true;
      return nullptr;
    }
    auto loaded = cache_.load(path);
    if (!loaded) return nullptr;
    known_.emplace(path, loaded.get());
    out_.keep_alive.push_back(loaded);
    return loaded.get();
  }

  // Whether any import that led nowhere leads into one of the directories.
  bool look_in(std::vector<std::string> directories) {
    directories_ = std::move(directories);
    bool any = false;
    std::unordered_map<std::string_view, const Module*> found;
    const std::size_t count = out_.keep_alive.size();
    for (std::size_t i = 0; i < count; ++i) {
      const auto module = out_.keep_alive[i];
      auto& imports = input_.import_targets[module.get()];
      for (const std::string& import : module->imports()) {
        if (import.starts_with('.') || imports.contains(import)) continue;
        const auto [at, is_new] = found.try_emplace(import, nullptr);
        if (is_new) at->second = in_added(import);
        if (at->second == nullptr) continue;
        imports.emplace(import, at->second);
        any = true;
      }
    }
    return any;
  }

  const Module* in_added(const std::string& import) {
    if (is_external_import(import)) return nullptr;
    for (const std::string& directory : directories_)
      if (const Module* const target = module_at(cache_.file_in(directory, import, context_.top)))
        return target;
    return nullptr;
  }

  const std::string& script_;
  const ProgramContext& context_;
  ModuleCache& cache_;
  ProgramInput& input_;
  AssembledProgram& out_;
  std::unordered_map<std::string, const Module*> known_;
  std::vector<std::string> directories_;  // that the program adds
  std::size_t followed_ = 0;
};

}  // namespace

AssembledProgram assemble(const std::string& script, const ProgramContext& context,
                          ModuleCache& cache) {
  AssembledProgram out;
  auto root = cache.load(script);
  if (!root) return out;
  ProgramInput input;
  input.launches = context.launches;
  if (input.launches.empty()) input.launches = own_shown_commands(*root);
  input.gpus = context.gpus;
  input.shipped = context.shipped;
  input.any_in_project = context.any_in_project;
  input.where_in_project = context.where_in_project;
  input.scripts_above = context.scripts_above;
  input.follows_look_ups = context.follows_look_ups;
  input.is_notebook = script.ends_with(".ipynb");
  if (context.list)
    input.any_beside = [script, top = context.top, list = context.list,
                        &cache](const auto& accepts) {
      return any_script_in(directory_of(script), script, top, list, cache, accepts);
    };
  Gatherer(script, context, cache, input, out).gather(root);
  input.newest = with_implied(lowest(context.newest, input.modules, cache));
  out.program = std::make_unique<Program>(std::move(input));
  return out;
}

}  // namespace bench::diagnose
