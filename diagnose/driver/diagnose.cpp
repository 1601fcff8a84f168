#include "diagnose/driver/diagnose.hpp"

#include "bench/core/error.hpp"
#include "diagnose/config/config_entry.hpp"
#include "diagnose/driver/assemble.hpp"
#include "diagnose/driver/directory.hpp"
#include "diagnose/driver/finisher.hpp"
#include "diagnose/driver/launch_table.hpp"
#include "diagnose/driver/notebook.hpp"
#include "diagnose/driver/package_pages.hpp"
#include "diagnose/driver/project_configs.hpp"
#include "diagnose/driver/project_requirements.hpp"
#include "diagnose/driver/project_scripts.hpp"
#include "diagnose/driver/source_files.hpp"
#include "diagnose/driver/task_plan.hpp"
#include "diagnose/driver/unread.hpp"
#include "diagnose/launch/launch_documents.hpp"
#include "diagnose/model/script_kind.hpp"
#include "diagnose/model/shown_commands.hpp"
#include "scenarios/pitfalls/frameworks/config_words.hpp"
#include "scenarios/pitfalls/reach/certainty.hpp"
#include "scenarios/pitfalls/registry.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <filesystem>
#include <iterator>
#include <mutex>
#include <set>
#include <thread>
#include <tuple>

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
  findings.erase(std::unique(findings.begin(), findings.end(), same_place), findings.end());
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

// What a program that begins with a file is for: all that the file brings, or the file alone where
// it only defines things, for all else has programs of its own.
enum class Purpose : std::uint8_t { whole, itself };

class Session {
 public:
  Session(const DiagnoseOptions& options, Reader reader, Lister list)
      : options_(options),
        cache_(std::move(reader), list, options.parse_limit),
        list_(std::move(list)),
        launches_(cache_, list_),
        pages_(cache_, list_),
        configs_(cache_, list_),
        scripts_(cache_, list_) {
    if (options.launch) {
      auto launch = parse_launch(*options.launch);
      if (!launch)
        throw UsageError("--launch '" + *options.launch +
                         "': expected a command that starts a Python script, such as "
                         "torchrun --nproc-per-node=4 train.py");
      given_launch_ = std::move(*launch);
    }
  }

  std::vector<Finding> run_file(const SourceFile& file, Purpose purpose) {
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

  // Hands the program of one file to `visit`, without running rules.
  void visit(const SourceFile& file, const std::function<void(const Program&)>& visit) {
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

  void note_files(const std::vector<SourceFile>& files) {
    launches_.note_files(files);
    pages_.note_files(files);
  }

  bool covered(const std::string& path) {
    const std::lock_guard lock(mutex_);
    return covered_.contains(path);
  }

  ModuleCache& cache() { return cache_; }

  void note_unreadable(const std::vector<std::string>& directories) {
    for (const std::string& directory : directories)
      note(directory, "cannot be read: what it holds is not checked", true);
  }

  std::vector<Notice> notices() const {
    std::vector<Notice> out;
    for (const auto& [file, notice] : notices_) out.push_back(notice);
    return out;
  }

 private:
  // The first notice of a file stays, unless a graver one comes.
  void note(const std::string& file, std::string text, bool unchecked) {
    const std::lock_guard lock(mutex_);
    Notice& notice = notices_[file];
    if (notice.text.empty() || (unchecked && !notice.unchecked))
      notice = {file, std::move(text), unchecked};
  }

  // The text of a script or config that is worth a look; nothing when it is not.
  std::optional<std::string> read(const SourceFile& file, bool (*is_wanted)(std::string_view)) {
    auto source = cache_.source(file.path);
    if (!source) {
      // Large JSON and YAML files are data.
      const bool is_config = file.type == FileType::json || file.type == FileType::yaml;
      if (!is_config || !is_large(file.path))
        note(file.path, "cannot be read, or is larger than 10 MiB: not checked", true);
      return std::nullopt;
    }
    if (!source->readable) {
      note(file.path, std::move(source->problem), true);
      return std::nullopt;
    }
    if (!is_wanted(source->text) && !file.is_named) return std::nullopt;
    if (file.is_named || (!is_data(file, source->text) && may_configure_training(source->text)))
      if (std::string why = why_unread(file.type, file.path, source->text); !why.empty()) {
        note(file.path, why + ": not checked", true);
        return std::nullopt;
      }
    if (!is_wanted(source->text)) return std::nullopt;
    if (!source->problem.empty()) note(file.path, std::move(source->problem), false);
    return std::move(source->text);
  }

  void note_unparsed(const AssembledProgram& assembled) {
    for (const auto& module : assembled.keep_alive) {
      if (module->tree().timed_out())
        note(module->path(),
             "not parsed within " +
                 std::to_string(
                     std::chrono::duration_cast<std::chrono::milliseconds>(options_.parse_limit)
                         .count()) +
                 " ms (--parse-limit): not checked",
             true);
      else if (module->tree().has_errors())
        note(module->path(),
             error_place(*module) +
                 "does not parse (a syntax error, or another version of Python); the statements "
                 "that do parse are checked",
             false);
    }
  }

  // Cells of a notebook are parsed as one text, whose lines are not the file's.
  std::string error_place(const Module& module) const {
    const Position at = module.tree().first_error();
    if (module.path().ends_with(".ipynb")) {
      const auto json = cache_.read(module.path());
      return json ? place_in_notebook(notebook_source(*json).line(at.line)) + " " : "";
    }
    return "line " + std::to_string(at.line) + ", column " + std::to_string(at.column) + " ";
  }

  ProgramContext context_of(const SourceFile& file) {
    ProgramContext context;
    context.top = file.top;
    context.gpus = options_.gpus;
    context.list = list_;
    if (given_launch_) context.launches.push_back(*given_launch_);
    if (!given_launch_) context.launches = launches_.lines_of(file);
    context.newest = versions_of(file, context.launches);
    context.shipped = [this, file](const std::string& key) { return configured(file, key); };
    context.any_in_project = asker_of(file);
    return context;
  }

  // Questions about the project of a file. Of a file that was given alone it is what stands beside
  // it, or all below the mark of a root.
  std::function<bool(const std::string&, const TextTest&)> asker_of(const SourceFile& file) {
    return [this, file](const std::string& question, const TextTest& accepts) {
      std::string root = directory_of(file.path);
      if (!file.is_named)
        root = configs_.root_among(directories_above(file.path, file.top), file.top);
      else if (const auto above = launches_.directories_above_given(file.path); !above.empty())
        root = above.back();
      return scripts_.any(root, question, accepts);
    };
  }

  // A script that was given alone may lie below its project's root.
  std::vector<ShippedValue> configured(const SourceFile& file, const std::string& key) {
    if (file.is_named) {
      const auto above = launches_.directories_above_given(file.path);
      if (above.empty()) return configs_.values_of(directory_of(file.path), file.path, key);
      std::error_code error;
      const auto path = std::filesystem::absolute(file.path, error).lexically_normal();
      return configs_.values_of(above.back(), path.string(), key);
    }
    const auto directories = directories_above(file.path, file.top);
    return configs_.values_of(configs_.root_among(directories, file.top), file.path, key);
  }

  NewestVersions versions_of(const SourceFile& file, const std::vector<LaunchLine>& launches) {
    NewestVersions out = requirements_of(file);
    const NewestVersions entered = environments_of(launches, cache_);
    out.python = std::min(out.python, entered.python);
    fill_open(out, entered);
    if (out.lightning == kAnyVersion)
      out.lightning = pages_.lightning_for(directories_above(file.path, file.top), file.top);
    return out;
  }

  // The nearest directory that bounds a package counts.
  NewestVersions requirements_of(const SourceFile& file) {
    NewestVersions out;
    const auto narrow = [&](const std::string& directory, const std::string& top) {
      const std::lock_guard lock(mutex_);
      auto known = requirements_.find(directory);
      if (known == requirements_.end())
        known =
            requirements_.emplace(directory, requirements_in(directory, top, cache_, list_)).first;
      fill_open(out, known->second);
    };
    for (const std::string& directory : directories_above(file.path, file.top))
      narrow(directory, file.top);
    if (!file.is_named) return out;
    const auto above = launches_.directories_above_given(file.path);
    for (const std::string& directory : above) narrow(directory, above.back());
    return out;
  }

  std::vector<Finding> checked(const Program& program) {
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
    return Finisher(cache_, options_.selection).finish(program, std::move(found));
  }

  std::vector<Finding> run_script(const SourceFile& file, Purpose purpose) {
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
    std::vector<Finding> found = checked(*assembled.program);
    // What it imports is checked in programs that have all of it.
    if (is_part) std::erase_if(found, [&](const Finding& each) { return !speaks_of(each.file); });
    return found;
  }

  std::vector<Finding> run_launches(const SourceFile& file) {
    const auto text = read(file, may_hold_launches);
    if (!text) return {};
    std::vector<LaunchLine> launches = read_launch_document(file.path, *text);
    for (LaunchLine& launch : launches_.lines_beside(launches, file.path))
      launches.push_back(std::move(launch));
    return run_without_script(file, std::move(launches), {});
  }

  std::vector<Finding> run_config(const SourceFile& file) {
    const auto text = read(file, [](std::string_view) { return true; });
    if (!text || !pitfalls::may_configure_ranks(*text)) return {};
    auto entries =
        file.type == FileType::toml ? read_toml(file.path, *text) : read_yaml(file.path, *text);
    if (entries.empty()) return {};
    return run_without_script(file, {}, std::move(entries));
  }

  std::vector<Finding> run_without_script(const SourceFile& file, std::vector<LaunchLine> launches,
                                          std::vector<ConfigEntry> configs) {
    const Module empty(file.path, "", "");
    ProgramInput input;
    input.modules.push_back(&empty);
    input.launches = std::move(launches);
    input.configs = std::move(configs);
    input.newest = with_implied(versions_of(file, input.launches));
    input.gpus = options_.gpus;
    input.any_in_project = asker_of(file);
    // The scripts that read a config stand in the folders above it.
    input.any_beside = [this, &file](const TextTest& accepts) {
      const auto directories = directories_above(file.path, file.top);
      return std::any_of(directories.begin(), directories.end(), [&](const std::string& each) {
        return any_script_in(each, "", file.top, list_, cache_, accepts);
      });
    };
    return checked(Program(std::move(input)));
  }

  const DiagnoseOptions& options_;
  ModuleCache cache_;
  Lister list_;
  LaunchTable launches_;
  PackagePages pages_;
  ProjectConfigs configs_;
  ProjectScripts scripts_;
  std::optional<LaunchLine> given_launch_;
  std::mutex mutex_;
  std::set<std::string> covered_;
  std::map<std::string, Notice> notices_;               // by file
  std::map<std::string, NewestVersions> requirements_;  // by directory
};

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

Reader reader_of(const std::map<std::string, std::string>& files) {
  return [&files](const std::string& path) -> std::optional<std::string> {
    const auto found = files.find(path);
    return found == files.end() ? std::nullopt : std::optional(found->second);
  };
}

Lister lister_of(const std::map<std::string, std::string>& files) {
  return [&files](const std::string& directory) { return list_texts(files, directory); };
}

}  // namespace

DiagnoseResult diagnose(const DiagnoseOptions& options) { return diagnose(options, read_source); }

DiagnoseResult diagnose(const DiagnoseOptions& options, const Reader& reader) {
  check_selection(options.selection);
  std::vector<std::string> unreadable;
  const std::vector<SourceFile> files = find_sources(options.paths, &unreadable);
  Session session(options, reader, list_directory);
  session.note_files(files);
  session.note_unreadable(unreadable);
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
  result.notices = session.notices();
  return result;
}

void for_each_program(const DiagnoseOptions& options,
                      const std::function<void(const Program& program)>& visit) {
  const std::vector<SourceFile> files = find_sources(options.paths);
  Session session(options, read_source, list_directory);
  session.note_files(files);
  for (const SourceFile& file : files)
    if (file.type != FileType::other) session.visit(file, visit);
}

std::vector<Finding> diagnose_texts(const std::map<std::string, std::string>& files,
                                    const std::string& script, const DiagnoseOptions& options) {
  Session session(options, reader_of(files), lister_of(files));
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
  Session(options, reader_of(files), lister_of(files)).visit({script, type_of(script), "."}, visit);
}

}  // namespace bench::diagnose
