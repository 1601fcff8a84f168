#include "bench/harness/measured_runner.hpp"

#include "bench/core/strategy.hpp"
#include "bench/harness/case_metrics.hpp"
#include "bench/harness/max_batch.hpp"
#include "bench/harness/verification.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace bench {
namespace {

using State = Verification::State;

// A probe of memory needs no statistics: the optimizer's state exists after the first step.
constexpr int kProbeSteps = 1;
constexpr int kProbeWarmup = 2;

Job measure_job(const Case& work) {
  Job job;
  job.kind = JobKind::measure;
  job.work = work;
  return job;
}

Job probe_job(const Case& work) {
  Job job = measure_job(work);
  job.work.steps = kProbeSteps;
  job.work.warmup = kProbeWarmup;
  return job;
}

}  // namespace

Verification MeasuredRunner::run_verification(const Case& work, const std::string& label) {
  VerificationBook book;
  for (const Job& job : book.add(work)) {
    book.put(job, runner_.run(job, label + "_" + job_kind_name(job.kind)));
  }
  return *book.verdict(work);
}

Verification MeasuredRunner::verify(const Case& work) {
  const std::string group = verification_group(work);
  if (const auto known = verified_.find(group); known != verified_.end()) return known->second;
  const std::string label = log_label(work.name());
  Verification verification = run_verification(work, label);
  if (verification.state == State::reference_too_large) {
    const Case small = with_small_batch(work);
    verification = run_verification(small, label + "_small");
    verification.text += " at batch " + std::to_string(small.batch) +
                         ", because the whole batch does not fit one device";
  }
  verified_[group] = verification;
  return verification;
}

// Probes one batch after another and stops at the first that does not fit. Returns what stands in
// the way of a measurement; otherwise the case has the batch that was found.
std::optional<JobOutcome> MeasuredRunner::search(PlannedCase& planned, const std::string& label) {
  MaxBatch max_batch(planned, 1, [&](const std::vector<Case>& probes) {
    std::vector<JobOutcome> outcomes;
    for (const Case& probe : probes) {
      outcomes.push_back(runner_.run(probe_job(probe), label + "_search"));
      if (outcomes.back().status != RankStatus::ok) break;
    }
    return outcomes;
  });
  MaxBatchResult found = max_batch.run();
  planned.work.batch = found.work.batch;
  planned.search.reset();
  if (found.outcome.status != RankStatus::ok) return found.outcome;
  search_facts_[static_cast<std::size_t>(&planned - cases_.data())] = found.facts;
  return std::nullopt;
}

std::optional<CaseResult> MeasuredRunner::measure(std::size_t index) {
  const auto begin = std::chrono::steady_clock::now();
  PlannedCase& planned = cases_.at(index);
  std::vector<JobOutcome>& repetitions = repetitions_.at(index);
  if (planned.search) {
    const auto obstacle = search(planned, log_label(planned.work.name()));
    if (obstacle && obstacle->interrupted) return std::nullopt;
    if (obstacle) return result_of_outcome(planned.work, *obstacle);
  }
  const Case& work = planned.work;
  Verification verification = verified_as_reference();
  if (work.strategy != Strategy::single) verification = verify(work);
  if (verification.state == State::interrupted) return std::nullopt;
  if (verification.state == State::equal) {
    JobOutcome outcome = runner_.run(measure_job(work), log_label(work.name()));
    if (outcome.interrupted) return std::nullopt;
    repetitions.push_back(std::move(outcome));
  } else {
    repetitions.push_back(JobOutcome{});  // no timing of a case that is not verified
  }
  CaseResult result = measured_result(work, repetitions);
  if (const auto facts = search_facts_.find(index); facts != search_facts_.end()) {
    result.facts.insert(facts->second.begin(), facts->second.end());
  }
  apply(verification, result);
  result.real_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return result;
}

std::vector<StepSample> MeasuredRunner::samples(std::size_t index) const {
  std::vector<StepSample> all;
  int first_step = 0;  // steps of a repetition follow those of the one before
  for (const JobOutcome& outcome : repetitions_.at(index)) {
    int next_step = first_step;
    for (const RankReport& report : outcome.reports) {
      for (StepSample sample : report.samples) {
        sample.step += first_step;
        next_step = std::max(next_step, sample.step + 1);
        all.push_back(std::move(sample));
      }
    }
    first_step = next_step;
  }
  return all;
}

}  // namespace bench
