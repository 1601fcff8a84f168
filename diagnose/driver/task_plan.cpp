#include "diagnose/driver/task_plan.hpp"

#include "diagnose/driver/added_paths.hpp"
#include "diagnose/driver/assemble.hpp"

#include <algorithm>
#include <deque>

namespace bench::diagnose {
namespace {

constexpr std::string_view kSpaces = " \t\r\n";

// The names between `import` and the end of a statement, whose parentheses may hold line ends.
std::vector<std::string> imported_names(std::string_view rest) {
  const std::size_t open = rest.find_first_not_of(" \t");
  const bool long_list = open != std::string_view::npos && rest[open] == '(';
  rest = rest.substr(long_list ? open + 1 : 0);
  rest = rest.substr(0, rest.find_first_of(long_list ? ")" : "\n#;"));
  std::vector<std::string> out;
  while (!rest.empty()) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    std::string_view name = rest.substr(0, comma);
    rest.remove_prefix(std::min(comma + 1, rest.size()));
    name.remove_prefix(std::min(name.find_first_not_of(kSpaces), name.size()));
    name = name.substr(0, name.find_first_of(kSpaces));
    if (!name.empty() && name != "*") out.emplace_back(name);
  }
  return out;
}

}  // namespace

std::vector<std::string> imported_modules(std::string_view text) {
  constexpr std::string_view kImport = " import ";
  std::vector<std::string> out;
  for (std::size_t at = 0; at < text.size(); at = std::min(text.find('\n', at), text.size()) + 1) {
    std::string_view line = text.substr(at);
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    const bool from = line.starts_with("from ");
    if (!from && !line.starts_with("import ")) continue;
    line.remove_prefix(from ? 5 : 7);
    const std::size_t end = std::min(line.find_first_of(" ,\t\r\n;"), line.size());
    const std::string name(line.substr(0, end));
    if (name.empty()) continue;
    out.push_back(name);
    if (!from || !line.substr(end).starts_with(kImport)) continue;
    for (const std::string& each : imported_names(line.substr(end + kImport.size())))
      out.push_back(name.ends_with('.') ? name + each : name + '.' + each);
  }
  return out;
}

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
  for (const std::string& name : imported_modules(text)) {
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
