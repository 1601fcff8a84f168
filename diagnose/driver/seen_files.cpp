#include "diagnose/driver/seen_files.hpp"

#include "diagnose/driver/ignore_comments.hpp"
#include "diagnose/driver/repository.hpp"
#include "diagnose/model/script_kind.hpp"

#include <algorithm>
#include <filesystem>

namespace bench::diagnose {
namespace {

// Imports are not followed out of the folder of a file that is named; sys.path may lead there.
bool imports_from_above(const SourceFile& file, const AssembledProgram& assembled) {
  const std::string project = project_of(file.path);
  const std::string script = absolute_path(file.path);
  const std::string top = absolute_path(file.top);
  std::error_code error;
  const auto lies_above = [&](const std::string& path) {
    return !is_within(absolute_path(path), top) && std::filesystem::exists(path, error);
  };
  return std::any_of(
      assembled.keep_alive.begin(), assembled.keep_alive.end(), [&](const auto& module) {
        const std::string importer = absolute_path(module->path());
        const auto& imports = module->imports();
        return std::any_of(imports.begin(), imports.end(), [&](const std::string& import) {
          const auto candidates =
              import_candidates(importer, script, import, project.empty() ? "/" : project);
          return std::any_of(candidates.begin(), candidates.end(), lies_above);
        });
      });
}

}  // namespace

SeenFiles::SeenFiles(const DiagnoseOptions& options) : options_(options) {
  std::error_code error;
  for (const std::string& path : options.paths)
    if (std::filesystem::is_directory(path, error)) folders_.push_back(absolute_path(path));
}

void SeenFiles::note_ignores(const std::string& path) {
  const std::lock_guard lock(mutex_);
  with_ignores_.insert(path);
}

// Modules that nothing runs say what they are for in the programs that import them.
void SeenFiles::note_program(const SourceFile& file, const AssembledProgram& assembled) {
  const Module& root = assembled.program->root();
  const bool shares_out = shares_out_itself(root);
  const bool is_known =
      shares_out && root.tree().holds(kIgnoreMark) && !imports_from_above(file, assembled);
  const std::lock_guard lock(mutex_);
  bool is_complete = !assembled.is_cut;
  for (const auto& module : assembled.keep_alive) {
    if (module->tree().holds(kIgnoreMark)) with_ignores_.insert(module->path());
    is_complete = is_complete && !module->tree().has_errors() && !module->tree().timed_out();
  }
  if (!is_complete) {
    has_gap_ = true;
    return;
  }
  if (is_known) programs_.insert(file.path);
  if (!shares_out && !runs_itself(root)) return;
  for (const auto& module : assembled.keep_alive) in_programs_.insert(module->path());
}

void SeenFiles::note_alone(const std::string& path) {
  const std::lock_guard lock(mutex_);
  in_programs_.insert(path);
}

void SeenFiles::note_gap() {
  const std::lock_guard lock(mutex_);
  has_gap_ = true;
}

bool SeenFiles::has_ignores(const std::string& path) const {
  const std::lock_guard lock(mutex_);
  return with_ignores_.contains(path);
}

bool SeenFiles::is_project_given(const std::string& path) const {
  if (folders_.empty()) return false;
  const std::string project = project_of(path);
  return !project.empty() &&
         std::any_of(folders_.begin(), folders_.end(),
                     [&](const std::string& folder) { return is_within(project, folder); });
}

// A launch line of the command line stands for one way to start it, of perhaps many; a text without
// a place lacks what it imports.
Seen SeenFiles::of(const std::string& path) const {
  const std::lock_guard lock(mutex_);
  if (options_.launch || (options_.given_text && !options_.given_text->has_place)) return Seen::no;
  if (!has_gap_ && in_programs_.contains(path) && is_project_given(path)) return Seen::whole;
  return programs_.contains(path) ? Seen::itself : Seen::no;
}

}  // namespace bench::diagnose
