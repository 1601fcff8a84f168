#include "diagnose/driver/session.hpp"

#include "bench/core/error.hpp"
#include "diagnose/config/config_entry.hpp"
#include "diagnose/driver/assemble.hpp"
#include "diagnose/driver/directory.hpp"
#include "diagnose/driver/finisher.hpp"
#include "diagnose/driver/launch_table.hpp"
#include "diagnose/driver/notebook.hpp"
#include "diagnose/driver/package_pages.hpp"
#include "diagnose/driver/project_configs.hpp"
#include "diagnose/driver/project_scripts.hpp"
#include "diagnose/driver/repository.hpp"
#include "diagnose/driver/source_files.hpp"
#include "diagnose/driver/task_plan.hpp"
#include "diagnose/driver/unread.hpp"
#include "diagnose/driver/unused_ignores.hpp"
#include "diagnose/launch/launch_documents.hpp"
#include "diagnose/launch/shell_script.hpp"
#include "diagnose/model/script_kind.hpp"
#include "diagnose/model/shown_commands.hpp"
#include "scenarios/pitfalls/frameworks/config_words.hpp"
#include "scenarios/pitfalls/reach/certainty.hpp"
#include "scenarios/pitfalls/registry.hpp"

#include <algorithm>
#include <array>
#include <filesystem>

namespace bench::diagnose {
namespace {

// Words without which a file has nothing to do with training.
bool is_relevant(std::string_view text) {
  static constexpr auto kWords = std::to_array<std::string_view>(
      {"torch", "lightning", "horovod", "accelerate", "transformers", "deepspeed", "from trl"});
  return std::any_of(kWords.begin(), kWords.end(), [&](std::string_view word) {
    return text.find(word) != std::string_view::npos;
  });
}

// A script of few lines may leave the training to the files that it imports.
bool may_train(std::string_view text) {
  return is_relevant(text) || text.find("__main__") != std::string_view::npos;
}

bool is_large(const std::string& path) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  return !error && size > kMaxFileBytes;
}

// Of JSON files in a folder the larger ones are data, often of one object a line.
bool is_data(const SourceFile& file, const std::string& text) {
  constexpr std::size_t kMostOfConfig = 64 << 10;
  return file.type == FileType::json && text.size() > kMostOfConfig;
}

std::vector<Finding> run_rules(const Program& program, const Selection& selection) {
  std::vector<Finding> found;
  pitfalls::facts::Doubts doubts(program);
  for (const pitfalls::Rule& rule : pitfalls::all_rules()) {
    if (rule.check == nullptr || !selection.wants(rule)) continue;
    pitfalls::Report report(rule, found);
    rule.check(program, report);
    report.settle(doubts);
  }
  return found;
}

}  // namespace

Session::Session(const DiagnoseOptions& options, Reader reader, Lister list)
    : options_(options),
      cache_(std::move(reader), list, options.parse_limit),
      list_(std::move(list)),
      launches_(cache_, list_),
      pages_(cache_, list_),
      configs_(cache_, list_),
      scripts_(cache_, list_),
      seen_(options) {
  if (options.launch) {
    auto launch = parse_launch(*options.launch);
    if (!launch)
      throw UsageError("--launch '" + *options.launch +
                       "': expected a command that starts a Python script, such as "
                       "torchrun --nproc-per-node=4 train.py");
    given_launch_ = std::move(*launch);
  }
}

std::vector<Finding> Session::run_file(const SourceFile& file, Purpose purpose) {
  std::vector<Finding> out;
  switch (file.type) {
    case FileType::python:
    case FileType::notebook:
      return run_script(file, purpose);
    case FileType::shell:
      return run_launches(file);
    case FileType::yaml:
    case FileType::toml:
    case FileType::json:
      return run_config(file);
    case FileType::other:
      break;
  }
  return out;
}

void Session::visit(const SourceFile& file, const std::function<void(const Program&)>& visit) {
  (void)read(file, may_train);  // for its notices
  if (file.type == FileType::python || file.type == FileType::notebook) {
    const AssembledProgram assembled = assemble(file.path, context_of(file), cache_);
    if (assembled.program) visit(*assembled.program);
    return;
  }
  const auto text = cache_.read(file.path);
  if (!text || file.type == FileType::shell) return;
  const Module empty(file.path, "", "");
  ProgramInput input;
  input.modules.push_back(&empty);
  input.configs =
      file.type == FileType::toml ? read_toml(file.path, *text) : read_yaml(file.path, *text);
  input.gpus = options_.gpus;
  if (given_launch_) input.launches.push_back(*given_launch_);
  visit(Program(std::move(input)));
}

void Session::note_files(const std::vector<SourceFile>& files) {
  for (const SourceFile& file : files) {
    if (file.is_named) named_.insert(absolute_path(file.path));
    if (file.type == FileType::shell) shells_.insert(file.path);
  }
  if (!options_.exclude.empty())
    launches_.leave_out([this](const std::string& path) { return is_left_out(path); });
  launches_.note_files(files);
  pages_.note_files(files);
}

bool Session::covered(const std::string& path) const {
  const std::lock_guard lock(mutex_);
  return covered_.contains(path);
}

std::set<std::string> Session::covered() const {
  const std::lock_guard lock(mutex_);
  std::set<std::string> out = covered_;
  std::erase_if(out, [&](const std::string& path) { return is_left_out(path); });
  return out;
}

void Session::note_unreadable(const std::vector<std::string>& directories) {
  for (const std::string& directory : directories)
    notices_.note(directory, "cannot be read: what it holds is not checked", true);
}

void Session::note_emptied(const std::vector<Notice>& notices) {
  for (const Notice& notice : notices) notices_.note(notice.file, notice.text, notice.unchecked);
}

bool Session::is_left_out(const std::string& path) const {
  return options_.exclude.match(path) != nullptr && !named_.contains(absolute_path(path));
}

// The text of a script or config that is worth a look; nothing when it is not.
std::optional<std::string> Session::read(const SourceFile& file,
                                         bool (*is_wanted)(std::string_view)) {
  auto source = cache_.source(file.path);
  if (!source) {
    // Large JSON and YAML files are data.
    const bool is_config = file.type == FileType::json || file.type == FileType::yaml;
    if (!is_config || !is_large(file.path))
      notices_.note(file.path, "cannot be read, or is larger than 10 MiB: not checked", true);
    return std::nullopt;
  }
  if (!source->readable) {
    notices_.note(file.path, std::move(source->problem), true);
    return std::nullopt;
  }
  if (source->text.find(kIgnoreMark) != std::string::npos) seen_.note_ignores(file.path);
  if (!is_wanted(source->text) && !file.is_named) return std::nullopt;
  if (file.is_named || file.type == FileType::notebook ||
      (!is_data(file, source->text) && may_configure_training(source->text)))
    if (std::string why = why_unread(file.type, file.path, source->text); !why.empty()) {
      notices_.note(file.path, why + ": not checked", true);
      return std::nullopt;
    }
  if (!is_wanted(source->text)) return std::nullopt;
  if (!source->problem.empty()) notices_.note(file.path, std::move(source->problem), false);
  return std::move(source->text);
}

void Session::note_unused_ignores(const std::vector<SourceFile>& files) {
  if (notices_.any_unchecked()) seen_.note_gap();
  for (const SourceFile& file : files) {
    if (file.type == FileType::other || !seen_.has_ignores(file.path)) continue;
    for (Notice& notice :
         unused_ignores(file, seen_.of(file.path), cache_, options_, used_ignores_))
      notices_.add(std::move(notice));
  }
}

void Session::note_unparsed(const AssembledProgram& assembled) {
  for (const auto& module : assembled.keep_alive) {
    if (module->tree().timed_out())
      notices_.note(module->path(),
                    "not parsed within " +
                        std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(
                                           options_.parse_limit)
                                           .count()) +
                        " ms (--parse-limit): not checked",
                    true);
    else if (module->tree().has_errors())
      notices_.note(
          module->path(),
          error_place(*module) +
              "does not parse (a syntax error, or another version of Python); the statements "
              "that do parse are checked",
          false);
  }
}

// Cells of a notebook are parsed as one text, whose lines are not the file's.
std::string Session::error_place(const Module& module) const {
  const Position at = module.tree().first_error();
  if (module.path().ends_with(".ipynb")) {
    const auto json = cache_.read(module.path());
    return json ? place_in_notebook(notebook_source(*json).line(at.line)) + " " : "";
  }
  return "line " + std::to_string(at.line) + ", column " + std::to_string(at.column) + " ";
}

std::vector<Finding> Session::checked(const Program& program) {
  std::vector<Finding> found = run_rules(program, options_.selection);
  std::erase_if(found, [](const Finding& each) {
    return each.file.ends_with(kShownText) && !each.is_for_readers;
  });
  for (Finding& each : found)
    if (each.file.ends_with(kShownText)) each.file.resize(each.file.size() - kShownText.size());
  std::erase_if(found, [&](const Finding& each) {
    return launches_.is_evidence(each.file) &&
           !(each.is_for_readers && launches_.is_given(each.file));
  });
  std::erase_if(found, [&](const Finding& each) { return is_left_out(each.file); });
  return Finisher(cache_, options_, shells_, used_ignores_).finish(program, std::move(found));
}

std::vector<Finding> Session::run_script(const SourceFile& file, Purpose purpose) {
  if (!read(file, may_train)) return {};
  ProgramContext context = context_of(file);
  const auto root = cache_.load(file.path);
  if (!root) return {};
  // A library has hundreds of tests and plug-ins that each import most of it, and bring nothing
  // to it: tests start few lines and are no way to train, and definitions that no file imports
  // call nothing.
  const bool is_of_test = !file.is_named && is_test(*root);
  const bool alone =
      is_of_test || (!file.is_named && purpose == Purpose::itself && only_defines(*root));
  if (alone) context.most_modules = kNearestModules;
  const AssembledProgram assembled = assemble(file.path, context, cache_);
  if (!assembled.program) return {};
  const bool is_part = is_of_test || (alone && assembled.is_cut);
  const auto& modules = assembled.program->modules();
  if (std::none_of(modules.begin(), modules.end(),
                   [](const Module* module) { return is_relevant(module->tree().source()); }))
    return {};
  note_unparsed(assembled);
  // What tests share is as much on purpose as they are.
  const auto speaks_of = [&](const std::string& path) {
    return path == file.path || (is_of_test && is_below_tests(path));
  };
  {
    const std::lock_guard lock(mutex_);
    for (const auto& module : assembled.keep_alive)
      if (!is_part || speaks_of(module->path())) covered_.insert(module->path());
  }
  if (!is_part) seen_.note_program(file, assembled);
  std::vector<Finding> found = checked(*assembled.program);
  // What it imports is checked in programs that have all of it.
  if (is_part) std::erase_if(found, [&](const Finding& each) { return !speaks_of(each.file); });
  return found;
}

std::vector<Finding> Session::run_launches(const SourceFile& file) {
  const auto text = read(file, may_hold_launches);
  if (!text) return {};
  // Standard input and scripts/train have no name that says what they are.
  const bool is_named_so = launch_document(file.path) != LaunchDocument::none;
  std::vector<LaunchLine> launches =
      is_named_so ? read_launch_document(file.path, *text) : read_shell_script(file.path, *text);
  for (LaunchLine& launch : launches_.lines_beside(launches, file.path))
    launches.push_back(std::move(launch));
  return run_without_script(file, std::move(launches), {});
}

std::vector<Finding> Session::run_config(const SourceFile& file) {
  const auto text = read(file, [](std::string_view) { return true; });
  if (!text || !pitfalls::may_configure_ranks(*text)) return {};
  auto entries =
      file.type == FileType::toml ? read_toml(file.path, *text) : read_yaml(file.path, *text);
  if (entries.empty()) return {};
  return run_without_script(file, {}, std::move(entries));
}

std::vector<Finding> Session::run_without_script(const SourceFile& file,
                                                 std::vector<LaunchLine> launches,
                                                 std::vector<ConfigEntry> configs) {
  seen_.note_alone(file.path);
  const Module empty(file.path, "", "");
  ProgramInput input;
  input.modules.push_back(&empty);
  input.launches = std::move(launches);
  input.configs = std::move(configs);
  input.newest = with_implied(versions_of(file, input.launches));
  input.gpus = options_.gpus;
  input.any_in_project = asker_of(file);
  input.where_in_project = [this, &file](const auto& line_of) { return where(file, line_of); };
  // The scripts that read a config stand in the folders above it.
  input.any_beside = [this, &file](const TextTest& accepts) {
    const auto directories = directories_above(file.path, file.top);
    return std::any_of(directories.begin(), directories.end(), [&](const std::string& each) {
      return any_script_in(each, "", file.top, list_, cache_, accepts);
    });
  };
  return checked(Program(std::move(input)));
}

}  // namespace bench::diagnose
