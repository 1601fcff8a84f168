#include "diagnose/to_ddp/file_names.hpp"

#include <algorithm>

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
  const auto& tree = file.tree();
  NodeId first = tree[0].first_child;
  // The docstring, and imports from __future__, stay above.
  while (first != kNoNode && (tree[tree[first].first_child].kind == Kind::string ||
                              tree.text(first).starts_with("from __future__")))
    first = tree[first].next_sibling;
  return first == kNoNode ? Ref{} : Ref{&file, first};
}

Ref last_import_above(const Module& file, std::uint32_t byte) {
  Ref out;
  for (const Ref& each : imports_in(file))
    if (file.tree()[each.node].end <= byte) out = each;
  return out;
}

namespace {

// import os at the file's own level: an import in a function, or under a test, is none.
bool has_import(const Module& file, std::string_view name, std::string_view path) {
  const std::string_view known = file.import_path(name);
  if (known.empty() || (!path.empty() && known != path)) return false;
  const auto all = imports_in(file);
  return std::any_of(all.begin(), all.end(), [&](const Ref& each) {
    return each.text().find(name) != std::string_view::npos;
  });
}

// The file has something else by this name, as a parameter, a variable or an import.
bool is_taken(const Module& file, std::string_view name) {
  return !file.defs_of(name, false).empty() || !file.import_path(name).empty();
}

}  // namespace

std::string dist_name(const Module& file) {
  const bool has_dist = file.import_path("dist") == "torch.distributed";
  return !has_dist && is_taken(file, "dist") ? "torch_dist" : "dist";
}

FileNames::FileNames(const Program& program) : program_(program) {
  local_rank_ = is_taken(program.root(), "local_rank") ? "ddp_local_rank" : "local_rank";
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

// The file has a class or a variable of its own by that name.
bool FileNames::is_own(const Module& file, std::string_view name) const {
  const auto& known = file.defs_of(name, false);
  return std::any_of(known.begin(), known.end(), [&](std::uint32_t index) {
    return file.defs()[index].kind != DefKind::import;
  });
}

std::string FileNames::wrapper(const Module& file) {
  const bool own = is_own(file, "DistributedDataParallel");
  need(file, own ? kTorch : kWrapper);
  return own ? "torch.nn.parallel.DistributedDataParallel" : "DistributedDataParallel";
}

std::string FileNames::sampler(const Module& file) {
  const bool own = is_own(file, "DistributedSampler");
  need(file, own ? kTorch : kSampler);
  return own ? "torch.utils.data.DistributedSampler" : "DistributedSampler";
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
  import(kOs, has_import(file, "os", "os"), "import os");
  import(kTorch, has_import(file, "torch", "torch"), "import torch");
  import(kDist, has_import(file, dist, "torch.distributed"), "import torch.distributed as " + dist);
  import(kWrapper, has_import(file, "DistributedDataParallel", ""),
         "from torch.nn.parallel import DistributedDataParallel");
  import(kSampler, has_import(file, "DistributedSampler", ""),
         "from torch.utils.data import DistributedSampler");
  return out;
}

}  // namespace bench::diagnose
