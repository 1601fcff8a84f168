#include "training/jobs/job_runner.hpp"

#include "bench/core/error.hpp"
#include "bench/core/strategy.hpp"

#include <torch/version.h>

namespace bench::training {
namespace {

// Verification computes values, whatever the case under test does.
Execute execution_of(const Job& job) {
  const bool check = job.kind == JobKind::verify || job.kind == JobKind::reference;
  return check ? Execute::numeric : job.work.execute;
}

// The single-device run that a case is compared with, on the device of the same kind.
Case case_to_place(const Job& job) {
  Case work = job.work;
  if (job.kind != JobKind::reference) return work;
  work.strategy = Strategy::single;
  work.gpus.resize(1);
  return work;
}

void run_on_devices(const Job& job, JobContext& context, RankReport& report) {
  context.channel().phase("init");
  const auto place = context.place(case_to_place(job), execution_of(job));
  if (!place) {
    report.status = RankStatus::skip;
    report.message = place.skip().reason;
    return;
  }
  switch (job.kind) {
    case JobKind::verify:
    case JobKind::reference:
      return run_training_check(job, place.value(), context, report);
    case JobKind::measure:
      return run_measurement(job, place.value(), context, report);
    case JobKind::record:
      return run_recording(job, place.value(), context, report);
    case JobKind::pitfall:
      return run_pitfall(job, place.value(), context, report);
    case JobKind::calibrate:
      return run_calibration(job, place.value(), context);
    case JobKind::probe:
      return;
  }
}

// LibTorch appends a C++ stack trace to what(); a reader wants the message.
std::string own_words(const std::exception& error) {
  const auto* torch_error = dynamic_cast<const c10::Error*>(&error);
  return torch_error != nullptr ? torch_error->what_without_backtrace() : error.what();
}

}  // namespace

void ChannelPhases::enter(Phase phase) {
  channel_.phase("step " + std::to_string(step_) + ": " + simulator::phase_name(phase));
}

RankReport run_job(const Job& job, JobContext& context) {
  RankReport report;
  report.rank = context.ranks().rank;
  report.facts["torch"] = TORCH_VERSION;
  try {
    if (job.kind == JobKind::probe) {
      run_probe(report);
    } else {
      run_on_devices(job, context, report);
    }
  } catch (const c10::OutOfMemoryError& error) {
    report.status = RankStatus::out_of_memory;
    report.message = own_words(error);
  } catch (const std::exception& error) {
    report.status = RankStatus::error;
    report.message = own_words(error);
  }
  return report;
}

}  // namespace bench::training
