#include "diagnose/driver/module_cache.hpp"

#include "diagnose/config/requirements.hpp"
#include "diagnose/driver/assemble.hpp"
#include "diagnose/driver/notebook.hpp"
#include "diagnose/model/lost_names.hpp"

#include <algorithm>
#include <utility>

namespace bench::diagnose {

std::optional<SourceText> ModuleCache::source(const std::string& path) const {
  auto bytes = reader_(path);
  if (!bytes) return std::nullopt;
  const FileType type = type_of(path);
  // A file without an extension is read when it was named as a script.
  return to_source_text(std::move(*bytes), type == FileType::other ? FileType::python : type);
}

std::optional<std::string> ModuleCache::read(const std::string& path) const {
  auto found = source(path);
  return found ? std::optional(std::move(found->text)) : std::nullopt;
}

// !pip install torch==1.9 in a cell.
NewestVersions ModuleCache::installed_by(const std::string& notebook) const {
  const auto json = notebook.ends_with(".ipynb") ? read(notebook) : std::nullopt;
  return json ? read_installs(notebook_source(*json).commands) : NewestVersions{};
}

NewestVersions ModuleCache::versions_of(const Module& module) {
  {
    const std::lock_guard lock(mutex_);
    const auto known = versions_.find(module.path());
    if (known != versions_.end()) return known->second;
  }
  NewestVersions found = versions_by_names(module);
  const NewestVersions installed = installed_by(module.path());
  for (const VersionOf field : kVersionFields)
    found.*field = std::min(found.*field, installed.*field);
  const std::lock_guard lock(mutex_);
  return versions_.try_emplace(module.path(), found).first->second;
}

bool ModuleCache::is_decoded(const std::string& path) const {
  const std::lock_guard lock(mutex_);
  return decoded_.contains(path);
}

bool ModuleCache::leads_out(const std::string& path, const std::string& top) {
  // What is no link itself leads where its directory does, which many paths share.
  const auto known = paths_.find(path);
  std::string asked = known && known->is_link ? path : directory_of(path);
  if (asked.empty()) asked = ".";
  {
    const std::lock_guard lock(mutex_);
    const auto& answers = leading_out_[top];
    if (const auto found = answers.find(asked); found != answers.end()) return found->second;
  }
  const bool out = links_out_of(asked, top);
  const std::lock_guard lock(mutex_);
  return leading_out_[top].emplace(asked, out).first->second;
}

// The first of the files that the import may mean. Files of one directory import the same names,
// and so do the files of a script's program.
std::string ModuleCache::target_of(const Module& module, const std::string& script,
                                   const std::string& import, const std::string& top) {
  if (is_external_import(import)) return {};
  std::string found = first_of(beside_, directory_of(module.path()) + '\n' + top, import, top,
                               [&] { return candidates_beside(module.path(), import, top); });
  if (!found.empty()) return found;
  return first_of(above_, directory_of(script) + '\n' + top, import, top,
                  [&] { return candidates_above(script, import, top); });
}

std::string ModuleCache::file_in(const std::string& directory, const std::string& import,
                                 const std::string& top) {
  return first_of(added_, directory + '\n' + top, import, top,
                  [&] { return candidates_in(directory, import, top); });
}

std::string ModuleCache::first_of(FoundImports& known, const std::string& place,
                                  const std::string& import, const std::string& top,
                                  const std::function<std::vector<std::string>()>& candidates) {
  {
    const std::lock_guard lock(mutex_);
    const auto& here = known[place];
    if (const auto found = here.find(import); found != here.end()) return found->second;
  }
  std::string first;
  for (std::string& path : candidates()) {
    if (!paths_.find(path) || leads_out(path, top) || load(path) == nullptr) continue;
    first = std::move(path);
    break;
  }
  const std::lock_guard lock(mutex_);
  if (++found_count_ > kMaxTargets) {
    beside_.clear();
    above_.clear();
    added_.clear();
    found_count_ = 0;
  }
  known[place].emplace(import, first);
  return first;
}

ModuleCache::Targets ModuleCache::targets_of(const Module& module, const std::string& script,
                                             const std::string& top) {
  const std::string key = module.path() + '\n' + directory_of(script) + '\n' + top;
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = targets_.find(key); known != targets_.end()) return known->second;
  }
  std::vector<std::string> found;
  for (const std::string& import : module.imports())
    found.push_back(target_of(module, script, import, top));
  const std::lock_guard lock(mutex_);
  if (target_count_ + found.size() > kMaxTargets) {
    targets_.clear();
    target_count_ = 0;
  }
  target_count_ += found.size();
  return targets_
      .try_emplace(key, std::make_shared<const std::vector<std::string>>(std::move(found)))
      .first->second;
}

std::shared_ptr<const Module> ModuleCache::load(const std::string& path) {
  {
    const std::lock_guard lock(mutex_);
    const auto known = modules_.find(path);
    if (known != modules_.end()) return known->second;
  }
  std::shared_ptr<const Module> made;
  std::size_t size = 0;
  bool decoded = false;
  if (auto source = this->source(path)) {
    std::string text = std::move(source->text);
    decoded = !source->same_offsets;
    if (path.ends_with(".ipynb")) text = notebook_source(text).text;
    size = text.size();
    std::string stem = path.substr(path.rfind('/') + 1);
    stem = stem.substr(0, stem.find('.'));
    made = std::make_shared<const Module>(path, std::move(stem), std::move(text), parse_limit_);
  }
  const std::lock_guard lock(mutex_);
  if (bytes_ + size > kMaxBytes) {
    modules_.clear();  // programs under way keep theirs alive
    bytes_ = 0;
  }
  bytes_ += size;
  if (decoded) decoded_.insert(path);
  return modules_.try_emplace(path, std::move(made)).first->second;
}

}  // namespace bench::diagnose
