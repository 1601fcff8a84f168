#include "diagnose/driver/module_cache.hpp"

#include "diagnose/driver/notebook.hpp"

namespace bench::diagnose {

std::shared_ptr<const Module> ModuleCache::load(const std::string& path) {
  {
    const std::lock_guard lock(mutex_);
    const auto known = modules_.find(path);
    if (known != modules_.end()) return known->second;
  }
  std::shared_ptr<const Module> made;
  std::size_t size = 0;
  if (auto text = reader_(path)) {
    if (path.ends_with(".ipynb")) text = notebook_source(*text).text;
    size = text->size();
    std::string stem = path.substr(path.rfind('/') + 1);
    stem = stem.substr(0, stem.find('.'));
    made = std::make_shared<const Module>(path, std::move(stem), std::move(*text));
  }
  const std::lock_guard lock(mutex_);
  if (bytes_ + size > kMaxBytes) {
    modules_.clear();  // programs under way keep theirs alive
    bytes_ = 0;
  }
  bytes_ += size;
  return modules_.try_emplace(path, std::move(made)).first->second;
}

}  // namespace bench::diagnose
