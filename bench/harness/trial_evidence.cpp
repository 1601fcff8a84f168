#include "bench/harness/trial_evidence.hpp"

#include "bench/core/strategy.hpp"
#include "report/run_files.hpp"

#include <fstream>
#include <numeric>

namespace bench {
namespace {

namespace fs = std::filesystem;
using pitfalls::Json;

Json rank_document(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  Json document = in ? Json::parse(in, nullptr, false) : Json::object();
  return document.is_object() ? document : Json::object();
}

}  // namespace

Job trial_job(const pitfalls::Trial& trial, bool cured, std::uint64_t seed,
              const fs::path& evidence_file) {
  Job job;
  job.kind = JobKind::pitfall;
  job.form = trial.form;
  job.cured = cured;
  job.evidence_file = evidence_file.string();
  Case& work = job.work;
  work.scenario = "pitfalls";
  work.pitfall = trial.rule;
  if (!trial.form.empty()) work.tags = {{"form", std::string(trial.form)}};
  work.strategy =
      trial.processes == pitfalls::Processes::one ? Strategy::data_parallel : Strategy::distributed;
  work.gpus.resize(static_cast<std::size_t>(trial.gpus));
  std::iota(work.gpus.begin(), work.gpus.end(), 0);
  work.batch = trial.gpus;
  work.execute = Execute::numeric;
  work.seed = seed;
  return job;
}

pitfalls::RunEvidence gather_evidence(const Job& job, const JobOutcome& outcome) {
  Json document{{"name", fs::path(job.evidence_file).filename().string() + ".json"},
                {"strategy", strategy_name(job.work.strategy)},
                {"gpus", job.work.world_size()},
                {"limit_seconds", std::chrono::duration<double>(kTrialSilence).count()},
                {"ranks", Json::array()}};
  if (outcome.status != RankStatus::ok) document["message"] = outcome.message;
  for (int rank = 0; rank < job.work.process_count(); ++rank) {
    const fs::path file = job.evidence_file + ".rank" + std::to_string(rank) + ".json";
    Json one = rank_document(file);
    std::error_code gone;
    fs::remove(file, gone);
    const auto index = static_cast<std::size_t>(rank);
    if (index < outcome.ends.size()) {
      one["end"] = end_kind_name(outcome.ends[index].kind);
      one["phase"] = outcome.ends[index].phase;
    }
    for (const RankReport& report : outcome.reports) {
      const bool failed = report.rank == rank && report.status != RankStatus::ok;
      if (failed && !one.contains("error")) one["error"] = report.message;
    }
    document["ranks"].push_back(std::move(one));
  }
  report::write_file_atomically(
      job.evidence_file + ".json",
      document.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
  return pitfalls::RunEvidence(std::move(document));
}

}  // namespace bench
