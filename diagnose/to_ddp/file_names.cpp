#include "diagnose/to_ddp/file_names.hpp"

namespace bench::diagnose {
namespace {

std::vector<Ref> imports_in(const Module& file) {
  std::vector<Ref> out;
  const auto& tree = file.tree();
  for (NodeId at = tree[0].first_child; at != kNoNode; at = tree[at].next_sibling)
    if (tree[at].kind == Kind::import_statement || tree[at].kind == Kind::import_from)
      out.push_back({&file, at});
  return out;
}

}  // namespace

Ref first_import(const Module& file) {
  const auto all = imports_in(file);
  if (!all.empty()) return all.front();
  const NodeId first = file.tree()[0].first_child;
  return first == kNoNode ? Ref{} : Ref{&file, first};
}

Ref last_import(const Module& file) {
  const auto all = imports_in(file);
  return all.empty() ? Ref{} : all.back();
}

FileNames::FileNames(const Program& program) : program_(program) {
  local_rank_ = is_taken(program.root(), "local_rank") ? "ddp_local_rank" : "local_rank";
}

// The file has something else by this name, as a parameter, a variable or an import.
bool FileNames::is_taken(const Module& file, std::string_view name) const {
  return !file.defs_of(name, false).empty() || !file.import_path(name).empty();
}

std::string FileNames::dist_name(const Module& file) const {
  const bool has_dist = file.import_path("dist") == "torch.distributed";
  return !has_dist && is_taken(file, "dist") ? "torch_dist" : "dist";
}

void FileNames::need(const Module& file, Need what) { needs_[&file] |= what; }

std::string FileNames::dist(const Module& file) {
  need(file, kDist);
  return dist_name(file);
}

std::string FileNames::gpu(const Module& file) {
  if (&file == &program_.root()) return local_rank_;
  need(file, kTorch);
  return "torch.cuda.current_device()";
}

std::string FileNames::wrapper(const Module& file) {
  need(file, kWrapper);
  return "DistributedDataParallel";
}

std::string FileNames::sampler(const Module& file) {
  need(file, kSampler);
  return "DistributedSampler";
}

std::vector<const Module*> FileNames::importers() const {
  std::vector<const Module*> out;
  for (const Module* module : program_.modules())
    if (needs_.contains(module) && !imports_of(*module).empty()) out.push_back(module);
  return out;
}

std::string FileNames::imports_of(const Module& file) const {
  const auto found = needs_.find(&file);
  const unsigned needs = found == needs_.end() ? 0 : found->second;
  std::string out;
  const auto import = [&](Need what, bool is_there, const std::string& line) {
    if ((needs & what) != 0 && !is_there) out += (out.empty() ? "" : "\n") + line;
  };
  const std::string dist = dist_name(file);
  import(kOs, file.import_path("os") == "os", "import os");
  import(kTorch, file.import_path("torch") == "torch", "import torch");
  import(kDist, file.import_path(dist) == "torch.distributed",
         "import torch.distributed as " + dist);
  import(kWrapper, !file.import_path("DistributedDataParallel").empty(),
         "from torch.nn.parallel import DistributedDataParallel");
  import(kSampler, !file.import_path("DistributedSampler").empty(),
         "from torch.utils.data import DistributedSampler");
  return out;
}

}  // namespace bench::diagnose
