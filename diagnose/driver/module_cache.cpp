#include "diagnose/driver/module_cache.hpp"

#include "diagnose/config/requirements.hpp"
#include "diagnose/driver/assemble.hpp"
#include "diagnose/driver/notebook.hpp"
#include "diagnose/model/lost_names.hpp"

#include <algorithm>

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
  const std::pair key(path, top);
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = leading_out_.find(key); known != leading_out_.end())
      return known->second;
  }
  const bool out = links_out_of(path, top);
  const std::lock_guard lock(mutex_);
  return leading_out_.emplace(key, out).first->second;
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
