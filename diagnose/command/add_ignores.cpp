#include "diagnose/command/add_ignores.hpp"

#include "bench/core/error.hpp"
#include "diagnose/command/changed_texts.hpp"
#include "diagnose/command/verdict.hpp"
#include "diagnose/driver/baseline.hpp"
#include "diagnose/driver/diagnose.hpp"
#include "diagnose/driver/ignore_writer.hpp"
#include "diagnose/driver/source_search.hpp"
#include "diagnose/output/render.hpp"

#include <cstdio>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace bench::diagnose {
namespace {

using Given = std::map<std::string, SourceFile>;

Given given_files(const DiagnoseOptions& options) {
  Given out;
  for (SourceFile& file : find_sources(options).files) {
    if (file.is_named && file.type == FileType::notebook)
      throw UsageError(file.path +
                       ": --add-ignores writes no comments into notebooks; expected a script");
    const std::string path = file.path;
    out.emplace(path, std::move(file));
  }
  return out;
}

constexpr const char* kNoPlace = "no comment can stand there";

// What is to be written into the given files, and what cannot be.
class Plan {
 public:
  Plan(const Given& given, const ChangedTexts& texts) : given_(given), texts_(texts) {}

  void add(const Finding& finding) {
    IgnoreWriter* writer = writer_for(finding);
    if (writer == nullptr) return;
    const auto line = writer->line_for(finding.line);
    if (!line) return leave(finding, kNoPlace);
    ignores_[finding.file][*line].insert(finding.rule);
  }

  // Where a file would not be what it is, what is at fault is found line by line.
  void keep_sound(const std::vector<Finding>& findings) {
    for (auto& [file, ignores] : ignores_) {
      const IgnoreWriter& writer = writers_.at(file);
      if (writer.is_sound(ignores)) continue;
      IgnoresByLine sound;
      for (const auto& each : ignores)
        if (writer.is_sound({each})) sound.insert(each);
      for (const Finding& finding : findings)
        if (finding.file == file)
          if (const auto line = writer.line_for(finding.line); line && !sound.contains(*line))
            leave(finding, kNoPlace);
      ignores = std::move(sound);
    }
  }

  // A baseline knows a line by its text: where that changes, what it knows there comes again.
  void add_beside(const Finding& known) {
    const auto ignores = ignores_.find(known.file);
    if (ignores == ignores_.end()) return;
    const auto line = writers_.at(known.file).line_for(known.line);
    if (line && ignores->second.contains(*line)) ignores->second[*line].insert(known.rule);
  }

  // What still is found in spite of its comment gets none.
  bool drop_useless(const std::vector<Finding>& found) {
    bool any = false;
    for (const Finding& finding : found) {
      const auto ignores = ignores_.find(finding.file);
      if (ignores == ignores_.end()) continue;
      const auto line = writers_.at(finding.file).line_for(finding.line);
      if (!line || !ignores->second.contains(*line)) continue;
      auto& rules = ignores->second[*line];
      if (rules.erase(finding.rule) == 0) continue;
      if (rules.empty()) ignores->second.erase(*line);
      leave(finding, "no comment silences it");
      any = true;
    }
    return any;
  }

  void apply_to(ChangedTexts& texts) const {
    for (const auto& [file, ignores] : ignores_) texts.set(file, writers_.at(file).with(ignores));
  }

  std::size_t count() const {
    std::size_t number = 0;
    for (const auto& [file, ignores] : ignores_)
      for (const auto& [line, rules] : ignores) number += rules.size();
    return number;
  }
  std::size_t elsewhere() const { return elsewhere_; }

 private:
  IgnoreWriter* writer_for(const Finding& finding) {
    if (finding.file == kLaunchOption) {
      leave(finding, "no comment silences what --launch says");
      return nullptr;
    }
    const auto given = given_.find(finding.file);
    if (given == given_.end()) {
      ++elsewhere_;
      return nullptr;
    }
    auto known = writers_.find(finding.file);
    if (known == writers_.end())
      known =
          writers_.try_emplace(finding.file, given->second, texts_.read(finding.file).value_or(""))
              .first;
    const std::string why = known->second.why_not();
    if (!why.empty()) leave(finding, why);
    return why.empty() ? &known->second : nullptr;
  }

  void leave(const Finding& finding, const std::string& why) const {
    std::fprintf(stderr, "bench: note: %s:%u: %s stays: %s\n", printable(finding.file).c_str(),
                 finding.line, finding.rule.c_str(), why.c_str());
  }

  const Given& given_;
  const ChangedTexts& texts_;
  std::map<std::string, IgnoreWriter> writers_;  // of files as they are
  std::map<std::string, IgnoresByLine> ignores_;
  std::size_t elsewhere_ = 0;
};

// The findings that are shown, and those that a baseline knows.
struct Shown {
  DiagnoseResult result;
  std::vector<Finding> known;
};

Shown shown_findings(const Flags& flags, const ChangedTexts& texts) {
  Shown out;
  out.result = diagnose(flags.options, [&](const std::string& path) { return texts.read(path); });
  if (!flags.baseline) return out;
  const std::vector<Finding> all = out.result.findings;
  Baseline(*flags.baseline).take_known(out.result);
  std::set<std::tuple<std::string, std::uint32_t, std::uint32_t, std::string>> fresh;
  for (const Finding& each : out.result.findings)
    fresh.emplace(each.file, each.line, each.column, each.rule);
  for (const Finding& each : all)
    if (!fresh.contains({each.file, each.line, each.column, each.rule})) out.known.push_back(each);
  return out;
}

}  // namespace

int run_add_ignores(const Flags& flags, ResultOutput& output) {
  const Given given = given_files(flags.options);
  ChangedTexts texts(reader_of(flags.options));
  Shown shown = shown_findings(flags, texts);
  const bool refused = print_notices(shown.result.notices, flags.options);
  Plan plan(given, texts);
  for (const Finding& finding : shown.result.findings) plan.add(finding);
  plan.keep_sound(shown.result.findings);
  for (const Finding& finding : shown.known) plan.add_beside(finding);
  plan.apply_to(texts);
  Shown left = shown_findings(flags, texts);
  if (plan.drop_useless(left.result.findings)) {
    plan.apply_to(texts);
    left = shown_findings(flags, texts);
  }
  texts.hand_over(flags, output);
  std::fprintf(stderr, "%s %s; %s left\n", counted(plan.count(), "ignore").c_str(),
               flags.diff ? "shown" : "written",
               counted(left.result.findings.size(), "finding").c_str());
  if (plan.elsewhere() > 0)
    std::fprintf(stderr, "%s in files that were not given; name them or their folder\n",
                 counted(plan.elsewhere(), "finding").c_str());
  if (refused) return kExitUsage;
  return flags.diff && plan.count() > 0 ? kExitFindings : exit_code_of(left.result.findings);
}

}  // namespace bench::diagnose
