#include "bench/harness/pitfall_laboratory.hpp"

#include "bench/core/error.hpp"
#include "bench/harness/case_findings.hpp"
#include "bench/harness/progress.hpp"
#include "bench/harness/run_context.hpp"
#include "bench/harness/trial_evidence.hpp"
#include "bench/launch/interrupt.hpp"
#include "report/run_files.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <map>
#include <numeric>
#include <optional>

namespace bench {
namespace {

namespace fs = std::filesystem;
using pitfalls::Finding;
using pitfalls::Isolation;
using pitfalls::RunEvidence;
using pitfalls::Trial;

constexpr int kHangAttempts = 3;
// Limits of runs that are not expected to hang: for a loaded machine, not for a pitfall.
constexpr std::chrono::milliseconds kPatience{60'000};
constexpr std::chrono::milliseconds kLinger{200};
constexpr std::chrono::milliseconds kGrace{500};

LaunchSettings launch_settings(const LaboratoryRequest& request, const Interrupt& interrupt) {
  LaunchSettings settings;
  settings.program = {request.worker.string()};
  settings.program.insert(settings.program.end(), request.worker_arguments.begin(),
                          request.worker_arguments.end());
  settings.log_root = request.out / "logs";
  settings.limits = {kPatience, 2 * kPatience, kLinger, kGrace};
  settings.interrupt = &interrupt;
  if (::access(request.worker.c_str(), X_OK) != 0)
    throw MachineError(request.worker.string() +
                       ": the worker program is not there; build it, "
                       "or name one with --worker");
  return settings;
}

// A trial with what has become of its two runs.
struct Bench {
  const Trial* trial = nullptr;
  std::optional<JobOutcome> outcomes[2];  // broken, cured
  double seconds = 0;
};

bool names(const std::vector<Finding>& findings, std::string_view rule) {
  return std::any_of(findings.begin(), findings.end(),
                     [&](const Finding& finding) { return finding.name == rule; });
}

// The finding with the whole story of its trial: what is wrong, what a user sees, what it costs.
Finding told(Finding finding, const pitfalls::Price& price, const Trial& trial) {
  finding.file = "evidence/" + finding.file;
  finding.message = "Mistake: " + std::string(trial.mistake) + ". Found: " + finding.message +
                    ". You see: " + price.seen + ". It costs: " + pitfalls::figure(price.cost, 2) +
                    " " + price.unit + ".";
  finding.help = "Fix: " + std::string(trial.fix) + ".";
  return finding;
}

class Laboratory {
 public:
  Laboratory(const LaboratoryRequest& request, const Interrupt& interrupt, std::ostream& progress)
      : request_(request),
        interrupt_(interrupt),
        runner_(launch_settings(request, interrupt)),
        progress_(progress, &progress == &std::cerr && ::isatty(STDERR_FILENO) != 0,
                  request.trials.size()) {
    fs::create_directories(request.out / "evidence");
    for (const Trial* trial : request.trials) benches_.push_back({trial, {}, 0});
    results_.resize(benches_.size());
    describe_run();
  }

  LaboratoryOutcome run() {
    // Trials that can share processes first: with one start-up for many they are quick.
    std::map<int, std::vector<std::size_t>> shared;  // by number of processes
    for (std::size_t i = 0; i < benches_.size(); ++i) {
      const Trial& trial = *benches_[i].trial;
      if (trial.isolation == Isolation::shared) shared[processes_of(trial)].push_back(i);
    }
    for (const auto& [processes, indices] : shared) run_shared(processes, indices);
    for (std::size_t i = 0; i < benches_.size(); ++i)
      if (benches_[i].trial->isolation == Isolation::own) run_alone(i);
    progress_.end();
    return finish();
  }

 private:
  static int processes_of(const Trial& trial) {
    return trial.processes == pitfalls::Processes::one ? 1 : trial.gpus;
  }

  Job job_of(const Trial& trial, bool cured) const {
    const std::string file = log_label(pitfalls::title_of(trial)) + (cured ? ".cured" : ".broken");
    return trial_job(trial, cured, request_.seed, request_.out / "evidence" / file);
  }

  void run_shared(int processes, const std::vector<std::size_t>& indices) {
    std::vector<Job> jobs;
    for (const std::size_t index : indices)
      for (const bool cured : {false, true}) jobs.push_back(job_of(*benches_[index].trial, cured));
    auto begin = std::chrono::steady_clock::now();
    progress_.waiting_for(pitfalls::title_of(*benches_[indices.front()].trial));
    runner_.run_batch(jobs, "shared-" + std::to_string(processes),
                      [&](std::size_t job, JobOutcome outcome) {
                        const auto now = std::chrono::steady_clock::now();
                        Bench& bench = benches_[indices[job / 2]];
                        bench.seconds += std::chrono::duration<double>(now - begin).count();
                        begin = now;
                        bench.outcomes[job % 2] = std::move(outcome);
                        if (job % 2 == 1) judge(indices[job / 2]);
                      });
  }

  void run_alone(std::size_t index) {
    Bench& bench = benches_[index];
    if (interrupt_.requested()) return;
    const std::string title = pitfalls::title_of(*bench.trial);
    progress_.waiting_for(title);
    const auto begin = std::chrono::steady_clock::now();
    bench.outcomes[0] = run_that_may_hang(job_of(*bench.trial, false), log_label(title));
    bench.outcomes[1] = runner_.run(job_of(*bench.trial, true), log_label(title) + "-cured");
    const auto end = std::chrono::steady_clock::now();
    bench.seconds = std::chrono::duration<double>(end - begin).count();
    judge(index);
  }

  // On a loaded machine a worker may be silent for longer than a hang is waited for before it has
  // begun; such a run says nothing about the pitfall and is repeated with more patience.
  JobOutcome run_that_may_hang(const Job& job, const std::string& label) const {
    LaunchSettings settings = launch_settings(request_, interrupt_);
    JobOutcome outcome;
    for (int attempt = 1; attempt <= kHangAttempts; ++attempt) {
      settings.limits.silence = attempt * kTrialSilence;
      outcome = JobRunner(settings).run(job, label + "-broken");
      const bool begun =
          std::none_of(outcome.ends.begin(), outcome.ends.end(), [](const auto& end) {
            return end.kind == EndKind::silent &&
                   (end.phase.empty() || end.phase == "start" || end.phase == "init");
          });
      if (begun || outcome.interrupted) break;
    }
    return outcome;
  }

  void judge(std::size_t index) {
    Bench& bench = benches_[index];
    const Trial& trial = *bench.trial;
    CaseResult result;
    result.work = job_of(trial, false).work;
    result.real_seconds = bench.seconds;
    for (const auto& outcome : bench.outcomes)
      if (!outcome || outcome->interrupted) return;
    if (bench.outcomes[1]->status == RankStatus::skip) {
      result.status = CaseStatus::skipped;
      result.message = bench.outcomes[1]->message;
    } else {
      set_verdict(trial, gather_evidence(job_of(trial, false), *bench.outcomes[0]),
                  gather_evidence(job_of(trial, true), *bench.outcomes[1]), result);
    }
    results_[index] = std::move(result);
    report::write_results(request_.out, run_result());
    progress_.finished(*results_[index]);
  }

  void set_verdict(const Trial& trial, const RunEvidence& broken, const RunEvidence& cured,
                   CaseResult& result) {
    const pitfalls::Price price = trial.price(broken, cured);
    const auto found = pitfalls::judge_run(broken);
    const auto left = pitfalls::judge_run(cured);
    const bool clean = price.gone && left.empty() && !cured.document().contains("message");
    result.metrics = {{"reproduced", price.reproduced ? 1 : 0},
                      {"detected", names(found, trial.rule) ? 1 : 0},
                      {"cured", clean ? 1 : 0},
                      {"cost", price.cost}};
    result.facts = {{"mistake", std::string(trial.mistake)},
                    {"seen", price.seen},
                    {"fix", std::string(trial.fix)},
                    {"cost_unit", price.unit}};
    if (!left.empty()) result.facts["found_in_cured_run"] = findings_text(left);
    if (cured.document().contains("message"))
      result.facts["cured_run"] = cured.document()["message"].get<std::string>();
    for (const Finding& finding : found) {
      if (finding.name == trial.rule) {
        findings_.push_back(told(finding, price, trial));
        result.facts["rule"] = finding.rule;
        result.facts["finding"] = finding.message;
      } else {
        result.facts["also_found"] +=
            (result.facts["also_found"].empty() ? "" : "; ") + finding.rule + " " + finding.name;
      }
    }
    const bool whole = price.reproduced && names(found, trial.rule) && clean;
    if (!whole) incomplete_ = true;
  }

  void describe_run() {
    RunRequest request;
    request.plan.scenario = "pitfalls";
    request.plan.description =
        "what does each classic mistake do, what does it cost, what cures it?";
    for (const Trial* trial : request_.trials)
      request.plan.cases.push_back({job_of(*trial, false).work, {}, {}});
    context_ = make_run_context(request);
    // Real steps of real processes: nothing here comes from the simulator.
    context_.simulated = false;
    context_.machine = "virtual GPUs (numeric execution on this host)";
    context_.notes = {
        "Every mistake runs for real, next to its cure: real autograd, the real Reducer, Gloo on "
        "loopback. Times are of this host's CPU, not of GPUs."};
  }

  RunResult run_result() const {
    RunResult run;
    run.context = context_;
    for (const auto& result : results_)
      if (result) run.cases.push_back(*result);
    return run;
  }

  LaboratoryOutcome finish() {
    LaboratoryOutcome outcome;
    outcome.result = run_result();
    outcome.findings = findings_;
    report::write_results(request_.out, outcome.result);
    report::write_report_files(request_.out, outcome.result);
    const auto& cases = outcome.result.cases;
    const bool skipped = std::any_of(cases.begin(), cases.end(), [](const CaseResult& result) {
      return result.status != CaseStatus::done;
    });
    outcome.exit_code = incomplete_ ? kExitFindings : skipped ? kExitMachine : kExitClean;
    if (interrupt_.requested()) outcome.exit_code = kExitInterrupted;
    return outcome;
  }

  const LaboratoryRequest& request_;
  const Interrupt& interrupt_;
  JobRunner runner_;
  Progress progress_;
  std::vector<Bench> benches_;
  std::vector<std::optional<CaseResult>> results_;
  std::vector<Finding> findings_;
  RunContext context_;
  bool incomplete_ = false;
};

}  // namespace

LaboratoryOutcome run_laboratory(const LaboratoryRequest& request, std::ostream& progress) {
  const Interrupt interrupt;
  return Laboratory(request, interrupt, progress).run();
}

}  // namespace bench
