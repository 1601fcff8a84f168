#include "bench/harness/run_store.hpp"

#include "bench/core/case_json.hpp"
#include "bench/core/communication_sample.hpp"
#include "bench/core/error.hpp"
#include "bench/core/relative_metrics.hpp"
#include "bench/core/run_json.hpp"
#include "report/run_files.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>
#include <map>
#include <utility>

namespace bench {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kSamplesFile = "samples.jsonl";
constexpr const char* kSearchFact = "batch_search";

std::string sample_lines(const CaseResult& result, const std::vector<StepSample>& samples) {
  std::string lines;
  for (const StepSample& sample : samples) {
    Json line{{"case", result.name()},
              {"simulated", result.simulated},
              {"rank", sample.rank},
              {"step", sample.step},
              {"wall_ms", sample.wall_ms}};
    if (sample.device_ms >= 0) line["device_ms"] = sample.device_ms;
    if (const auto phases = phases_of(sample); !phases.empty()) line["phase_ms"] = phases;
    if (!result.simulated) line["loss"] = sample.loss;
    if (const auto communication = communication_of(sample)) {
      if (communication->compute_ms) line["compute_ms"] = *communication->compute_ms;
      line["communication_ms"] = communication->communication_ms;
      line["exposed_ms"] = communication->exposed_ms;
      line["all_reduce_ms"] = communication->all_reduce_ms;
    }
    lines += line.dump() + "\n";
  }
  return lines;
}

// Sample lines of an earlier run by case name.
std::map<std::string, std::string> read_sample_lines(const fs::path& file) {
  std::map<std::string, std::string> lines;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    const Json parsed = Json::parse(line, nullptr, false);
    if (parsed.is_object() && parsed.contains("case")) {
      lines[parsed["case"].get<std::string>()] += line + "\n";
    }
  }
  return lines;
}

// Whether a stored result answers what is planned; a search answers with a batch of its own.
bool answers(const CaseResult& result, const PlannedCase& planned) {
  if (planned.search.has_value() != result.facts.contains(kSearchFact)) return false;
  Case asked = planned.work;
  if (planned.search) asked.batch = result.work.batch;
  return case_to_json(asked) == case_to_json(result.work);
}

}  // namespace

RunStore::RunStore(fs::path out, const Plan& plan, RunContext context, bool resume)
    : out_(std::move(out)),
      context_(std::move(context)),
      results_(plan.cases.size()),
      samples_(plan.cases.size()) {
  if (resume && fs::exists(out_ / "results.json")) keep_finished(plan);
}

void RunStore::keep_finished(const Plan& plan) {
  const RunResult earlier = load_run(out_.string());
  if (earlier.context.scenario != context_.scenario ||
      earlier.context.fingerprint != context_.fingerprint) {
    throw UsageError("--resume " + out_.string() + ": holds a run of scenario '" +
                     earlier.context.scenario + "' on '" + earlier.context.machine +
                     "' with other settings; expected those of this command (" + context_.scenario +
                     " on " + context_.machine + ")");
  }
  const auto lines = read_sample_lines(out_ / kSamplesFile);
  for (std::size_t i = 0; i < plan.cases.size(); ++i) {
    for (const CaseResult& result : earlier.cases) {
      if (result.status != CaseStatus::done || !answers(result, plan.cases[i])) continue;
      results_[i] = result;
      if (const auto own = lines.find(result.name()); own != lines.end()) samples_[i] = own->second;
    }
  }
  context_.date = earlier.context.date;
  for (const auto& [name, version] : earlier.context.versions) context_.versions[name] = version;
}

void RunStore::put(std::size_t index, CaseResult result, const std::vector<StepSample>& samples) {
  // Times of a case that is not verified are withheld everywhere.
  samples_.at(index) =
      result.status == CaseStatus::done ? sample_lines(result, samples) : std::string();
  if (const auto torch = result.facts.find("torch"); torch != result.facts.end()) {
    context_.versions["torch"] = torch->second;
  }
  results_.at(index) = std::move(result);
  write();
}

RunResult RunStore::run() const {
  RunResult run;
  run.context = context_;
  for (const auto& result : results_) {
    if (result) run.cases.push_back(*result);
  }
  add_relative_metrics(run.cases);
  return run;
}

CaseResult RunStore::get(std::size_t index) const {
  const auto before =
      std::count_if(results_.begin(), results_.begin() + static_cast<std::ptrdiff_t>(index),
                    [](const auto& result) { return result.has_value(); });
  return run().cases.at(static_cast<std::size_t>(before));
}

void RunStore::write() const {
  report::write_results(out_, run());
  std::string lines;
  for (const std::string& own : samples_) lines += own;
  report::write_file_atomically(out_ / kSamplesFile, lines);
}

void RunStore::finish() const {
  write();
  report::write_report_files(out_, run());
}

std::vector<StepSample> simulated_samples(const CaseResult& result) {
  std::vector<StepSample> samples;
  for (int rank = 0; rank < result.work.process_count(); ++rank) {
    StepSample sample;
    sample.rank = rank;
    sample.wall_ms = result.samples.p50_ms;
    sample.phase_ms = result.phase_ms;
    samples.push_back(sample);
  }
  return samples;
}

}  // namespace bench
