#include "diagnose/driver/task_plan.hpp"

#include "diagnose/driver/added_paths.hpp"
#include "diagnose/driver/assemble.hpp"
#include "diagnose/driver/import_texts.hpp"

#include <algorithm>
#include <deque>

namespace bench::diagnose {

TaskPlan::TaskPlan(const std::vector<SourceFile>& files, ModuleCache& cache) {
  for (const SourceFile& file : files)
    if (file.type == FileType::python) given_.insert(file.path);
  std::set<std::string> runnable;
  if (files.size() > 1)
    for (const SourceFile& file : files) {
      if (file.type != FileType::python) continue;
      const auto text = cache.read(file.path);
      if (!text) continue;
      note_imports(file, *text);
      if (text->find("sys.path") != std::string::npos) note_added(file, cache);
      if (text->find("__main__") != std::string::npos) runnable.insert(file.path);
    }
  look_in_added();
  std::set<std::string> imported;
  for (const auto& [importer, targets] : imports_) imported.insert(targets.begin(), targets.end());
  for (const SourceFile& file : files) {
    if (file.type == FileType::other) continue;  // evidence only
    const bool is_module = imported.contains(file.path) && !runnable.contains(file.path);
    (is_module ? modules_ : scripts_).push_back(file);
  }
}

void TaskPlan::note_imports(const SourceFile& file, std::string_view text) {
  std::vector<std::string>& targets = imports_[file.path];
  for (const std::string& name : imports_in(text)) {
    bool any = false;
    for (std::string& path : import_candidates(file.path, file.path, name, file.top)) {
      if (!given_.contains(path)) continue;
      any = true;
      targets.push_back(std::move(path));
    }
    if (!any && !name.starts_with('.') && !is_external_import(name))
      lost_.push_back({file.path, file.top, name});
  }
}

void TaskPlan::note_added(const SourceFile& file, ModuleCache& cache) {
  const auto module = cache.load(file.path);
  if (!module) return;
  for (std::string& each : added_directories({module}, file.path, file.top))
    added_.insert(std::move(each));
}

// What one file adds to the search path holds for all that run with it; which those are is not
// known yet, so that it is taken to hold for every import that leads nowhere.
void TaskPlan::look_in_added() {
  for (const LostImport& lost : lost_)
    for (const std::string& directory : added_)
      for (std::string& path : candidates_in(directory, lost.name, lost.top))
        if (given_.contains(path)) imports_[lost.importer].push_back(std::move(path));
  lost_.clear();
}

TaskPlan::Entries TaskPlan::entries_to_modules(
    const std::function<bool(const std::string& path)>& covered) const {
  std::set<std::string> reached;
  Entries out;
  for (const SourceFile& file : modules_) {
    if (reached.contains(file.path) || covered(file.path)) continue;
    std::set<std::string> program = reached_from(file.path);
    const bool alone = std::all_of(program.begin(), program.end(), [&](const std::string& path) {
      return path == file.path || reached.contains(path) || covered(path);
    });
    (alone ? out.to_themselves : out.to_others).push_back(file);
    reached.merge(program);
  }
  return out;
}

// Breadth first and bounded, as a program is assembled.
std::set<std::string> TaskPlan::reached_from(const std::string& module) const {
  std::set<std::string> program{module};
  std::deque<std::string> pending{module};
  while (!pending.empty()) {
    const auto targets = imports_.find(pending.front());
    pending.pop_front();
    if (targets == imports_.end()) continue;
    for (const std::string& path : targets->second) {
      if (program.size() >= kMaxModules) break;
      if (program.insert(path).second) pending.push_back(path);
    }
  }
  return program;
}

}  // namespace bench::diagnose
