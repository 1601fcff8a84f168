#include "bench/harness/run_scenario.hpp"

#include "bench/core/error.hpp"
#include "bench/harness/anchor_to_measurement.hpp"
#include "bench/harness/case_findings.hpp"
#include "bench/harness/case_selection.hpp"
#include "bench/harness/gbench.hpp"
#include "bench/harness/measured_runner.hpp"
#include "bench/harness/progress.hpp"
#include "bench/harness/run_context.hpp"
#include "bench/harness/run_store.hpp"
#include "bench/harness/simulated_runner.hpp"

#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <utility>

namespace bench {
namespace {

constexpr std::chrono::milliseconds kSilence{120'000};

LaunchSettings launch_settings(const RunRequest& request, const Interrupt& interrupt) {
  LaunchSettings settings;
  settings.program = {request.worker.string()};
  settings.program.insert(settings.program.end(), request.worker_arguments.begin(),
                          request.worker_arguments.end());
  settings.log_root = request.out / "logs";
  settings.limits.job = request.case_time_out;
  settings.limits.silence = std::min(kSilence, request.case_time_out);
  settings.interrupt = &interrupt;
  if (::access(request.worker.c_str(), X_OK) != 0) {
    throw MachineError(request.worker.string() +
                       ": the worker program is not there; build it, or "
                       "name one with --worker");
  }
  return settings;
}

bool is_simulated(const Case& work) { return work.device == DeviceKind::vgpu; }

// Runs planned cases by index, each with the runner of its kind, and stores what comes back.
class Session {
 public:
  Session(const RunRequest& request, const CaseSelection& selection, const Interrupt& interrupt,
          std::ostream& progress)
      : plan_(request.plan),
        store_(request.out, plan_, make_run_context(request), request.resume),
        progress_(progress, &progress == &std::cerr && ::isatty(STDERR_FILENO) != 0,
                  selection.shown.size() + selection.references.size()),
        interrupt_(interrupt),
        places_(plan_.cases.size(), kNowhere),
        asked_(plan_.cases.size()) {
    start_runners(request, selection);
  }

  // The case's result with relative metrics; a second call measures again. nullopt: interrupted.
  std::optional<CaseResult> run(std::size_t index) {
    const bool again = std::exchange(asked_[index], true);
    if (!store_.has(index) || (again && measured(index))) {
      const Case& work = plan_.cases[index].work;
      progress_.waiting_for(work.name());
      if (!run_and_store(index)) return std::nullopt;
    }
    const CaseResult result = store_.get(index);
    if (!again) progress_.finished(result);
    return result;
  }

  RunOutcome finish() {
    progress_.end();
    store_.finish();
    RunOutcome outcome;
    outcome.result = store_.run();
    const auto& cases = outcome.result.cases;
    const bool trouble = std::any_of(cases.begin(), cases.end(), [](const CaseResult& result) {
      return result.status == CaseStatus::wrong || result.status == CaseStatus::failed;
    });
    outcome.exit_code = trouble ? kExitFindings : kExitClean;
    if (interrupt_.requested()) outcome.exit_code = kExitInterrupted;
    return outcome;
  }

 private:
  static constexpr std::size_t kNowhere = static_cast<std::size_t>(-1);

  void start_runners(const RunRequest& request, const CaseSelection& selection) {
    std::vector<std::size_t> all = selection.references;
    all.insert(all.end(), selection.shown.begin(), selection.shown.end());
    std::sort(all.begin(), all.end());
    std::vector<PlannedCase> simulated;
    std::vector<PlannedCase> measured;
    for (const std::size_t index : all) {
      const PlannedCase& planned = plan_.cases[index];
      if (planned.skip || store_.has(index)) continue;
      std::vector<PlannedCase>& list = is_simulated(planned.work) ? simulated : measured;
      places_[index] = list.size();
      list.push_back(planned);
    }
    if (!simulated.empty()) {
      SimulatedSettings settings;
      settings.launch = launch_settings(request, interrupt_);
      settings.out = request.out;
      if (request.measured_single_ms) {
        settings.anchor = anchor_to_measurement(plan_, *request.measured_single_ms,
                                                JobRunner(settings.launch), request.out / "graphs");
      }
      simulated_ = std::make_unique<SimulatedRunner>(settings, std::move(simulated));
    }
    if (!measured.empty()) {
      measured_ = std::make_unique<MeasuredRunner>(launch_settings(request, interrupt_),
                                                   std::move(measured));
    }
  }

  bool measured(std::size_t index) const {
    return places_[index] != kNowhere && !is_simulated(plan_.cases[index].work);
  }

  bool run_and_store(std::size_t index) {
    const PlannedCase& planned = plan_.cases[index];
    std::optional<CaseResult> result;
    std::vector<StepSample> samples;
    if (planned.skip) {
      result.emplace();
      result->work = planned.work;
      result->simulated = is_simulated(planned.work);
      result->status = CaseStatus::skipped;
      result->message = planned.skip->reason;
    } else if (is_simulated(planned.work)) {
      result = simulated_->wait(places_[index]);
      if (result) samples = simulated_samples(*result);
    } else if (!interrupt_.requested()) {
      result = measured_->measure(places_[index]);
      samples = measured_->samples(places_[index]);
    }
    if (result) add_findings(*result);
    if (result) store_.put(index, std::move(*result), samples);
    return store_.has(index);
  }

  const Plan& plan_;
  RunStore store_;
  Progress progress_;
  const Interrupt& interrupt_;
  std::vector<std::size_t> places_;  // index within the runner of its kind
  std::vector<char> asked_;          // whether run() has been called
  std::unique_ptr<SimulatedRunner> simulated_;
  std::unique_ptr<MeasuredRunner> measured_;
};

RunOutcome list_tests(const Plan& plan, const CaseSelection& selection, std::ostream& out) {
  for (const std::size_t index : selection.shown) out << plan.cases[index].work.name() << "\n";
  RunOutcome outcome;
  outcome.out_used = true;
  return outcome;
}

}  // namespace

RunOutcome run_scenario(const RunRequest& request, std::ostream& out, std::ostream& progress) {
  const BenchmarkFlags flags = parse_benchmark_flags(request.benchmark_flags);
  const CaseSelection selection = select_cases(request.plan, flags.filter);
  if (flags.list_tests) return list_tests(request.plan, selection, out);
  const Interrupt interrupt;
  Session session(request, selection, interrupt, progress);
  for (const std::size_t index : selection.references) (void)session.run(index);
  std::vector<BenchmarkCase> cases;
  for (const std::size_t index : selection.shown) {
    cases.push_back(
        {request.plan.cases[index].work.name(), [&session, index] { return session.run(index); }});
  }
  run_benchmarks(flags, cases, make_run_context(request), out);
  RunOutcome outcome = session.finish();
  outcome.out_used = !flags.format.empty();
  return outcome;
}

}  // namespace bench
