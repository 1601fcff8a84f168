#include "diagnose/driver/diagnose.hpp"

#include "diagnose/driver/directory.hpp"
#include "diagnose/driver/session.hpp"
#include "diagnose/driver/source_search.hpp"
#include "diagnose/driver/task_plan.hpp"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <thread>
#include <tuple>

namespace bench::diagnose {
namespace {

// Of one finding in several programs the one that is surest comes first, and so is kept.
bool before(const Finding& a, const Finding& b) {
  return std::tie(a.file, a.line, a.cell_line, a.column, a.rule, b.severity, a.message) <
         std::tie(b.file, b.line, b.cell_line, b.column, b.rule, a.severity, b.message);
}

bool same_place(const Finding& a, const Finding& b) {
  return a.file == b.file && a.line == b.line && a.cell_line == b.cell_line &&
         a.column == b.column && a.rule == b.rule;
}

void sort_and_merge(std::vector<Finding>& findings) {
  std::sort(findings.begin(), findings.end(), before);
  for (auto first = findings.begin(); first != findings.end();) {
    const auto end = std::find_if(first, findings.end(),
                                  [&](const Finding& each) { return !same_place(*first, each); });
    if (std::any_of(first, end, [](const Finding& each) { return each.forbids_fix; }))
      first->fix.reset();
    first = end;
  }
  findings.erase(std::unique(findings.begin(), findings.end(), same_place), findings.end());
}

// Findings in the order of the files, whichever thread is first: of equal ones the first is kept.
void run_all(const std::vector<SourceFile>& files, unsigned wanted_threads,
             const std::function<std::vector<Finding>(const SourceFile&)>& run,
             std::vector<Finding>& out) {
  const std::size_t cores = std::max(1U, std::thread::hardware_concurrency());
  const std::size_t threads =
      std::min<std::size_t>(wanted_threads > 0 ? wanted_threads : cores, files.size() / 4 + 1);
  std::vector<std::vector<Finding>> found(files.size());
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < files.size(); i = next++) found[i] = run(files[i]);
  };
  std::vector<std::thread> workers;
  for (std::size_t i = 1; i < threads; ++i) workers.emplace_back(work);
  work();
  for (std::thread& worker : workers) worker.join();
  for (std::vector<Finding>& each : found)
    std::move(each.begin(), each.end(), std::back_inserter(out));
}

Reader reader_of_texts(const std::map<std::string, std::string>& files) {
  return [&files](const std::string& path) -> std::optional<std::string> {
    const auto found = files.find(path);
    return found == files.end() ? std::nullopt : std::optional(found->second);
  };
}

Lister lister_of_texts(const std::map<std::string, std::string>& files) {
  return [&files](const std::string& directory) { return list_texts(files, directory); };
}

}  // namespace

DiagnoseResult diagnose(const DiagnoseOptions& options) {
  return diagnose(options, reader_of(options));
}

DiagnoseResult diagnose(const DiagnoseOptions& options, const Reader& reader) {
  check_selection(options.selection);
  const FoundSources found = find_sources(options);
  const std::vector<SourceFile>& files = found.files;
  Session session(options, reader, lister_of(options));
  session.note_files(files);
  session.note_unreadable(found.unreadable);
  session.note_emptied(found.emptied);
  const TaskPlan plan(files, session.cache());
  DiagnoseResult result;
  const auto run = [&](const std::vector<SourceFile>& round, Purpose purpose, unsigned threads) {
    const auto run_one = [&](const SourceFile& file) { return session.run_file(file, purpose); };
    run_all(round, threads, run_one, result.findings);
  };
  const auto covered = [&](const std::string& path) { return session.covered(path); };
  // Scripts first, then modules that no script has read. What is read never depends on timing:
  // which files a round begins with is settled before it, and the last round has one thread.
  run(plan.scripts(), Purpose::itself, options.threads);
  const TaskPlan::Entries entries = plan.entries_to_modules(covered);
  run(entries.to_others, Purpose::whole, options.threads);
  run(entries.to_themselves, Purpose::itself, options.threads);
  for (const SourceFile& file : plan.modules())
    if (!session.covered(file.path)) run({file}, Purpose::whole, 1);
  result.files = plan.scripts().size() + plan.modules().size();
  sort_and_merge(result.findings);
  session.note_unused_ignores(files);
  result.notices = session.notices();
  result.checked = session.covered();
  for (const SourceFile& file : files) result.checked.insert(file.path);
  return result;
}

std::vector<Notice> for_each_program(const DiagnoseOptions& options,
                                     const std::function<void(const Program& program)>& visit) {
  return for_each_program(options, reader_of(options), visit);
}

std::vector<Notice> for_each_program(const DiagnoseOptions& options, const Reader& reader,
                                     const std::function<void(const Program& program)>& visit) {
  const FoundSources found = find_sources(options);
  Session session(options, reader, lister_of(options));
  session.note_files(found.files);
  session.note_unreadable(found.unreadable);
  session.note_emptied(found.emptied);
  for (const SourceFile& file : found.files)
    if (file.type != FileType::other) session.visit(file, visit);
  return session.notices();
}

std::vector<Finding> diagnose_texts(const std::map<std::string, std::string>& files,
                                    const std::string& script, const DiagnoseOptions& options) {
  Session session(options, reader_of_texts(files), lister_of_texts(files));
  std::vector<SourceFile> sources;
  for (const auto& [path, text] : files) sources.push_back({path, type_of(path), "."});
  session.note_files(sources);
  std::vector<Finding> found = session.run_file({script, type_of(script), "."}, Purpose::whole);
  sort_and_merge(found);
  return found;
}

void for_each_program_of_texts(const std::map<std::string, std::string>& files,
                               const std::string& script, const DiagnoseOptions& options,
                               const std::function<void(const Program& program)>& visit) {
  Session(options, reader_of_texts(files), lister_of_texts(files))
      .visit({script, type_of(script), "."}, visit);
}

}  // namespace bench::diagnose
