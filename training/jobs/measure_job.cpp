// measure: warm-up, then timed steps until the median has settled. All ranks take the same number
// of steps: rank 0 decides and tells the others between steps.
#include "bench/core/communication_sample.hpp"

#include "training/devices/memory_ledger.hpp"
#include "training/devices/phase_timer.hpp"
#include "training/jobs/job_runner.hpp"
#include "training/jobs/stopping_rule.hpp"

namespace bench::training {
namespace {

// Steps between two decisions: talking to the other ranks costs more than a short step.
constexpr int kStepsPerDecision = 5;

class Decision {
 public:
  Decision(const Job& job, const Placement& placement) : job_(job), placement_(placement) {
    rule_.min_seconds = job.min_seconds;
    rule_.max_seconds = job.max_seconds;
  }

  bool enough(const std::vector<double>& step_ms) {
    if (job_.work.steps > 0) return static_cast<int>(step_ms.size()) >= job_.work.steps;
    if (step_ms.size() % kStepsPerDecision != 0) return false;
    auto stop = torch::tensor(enough_samples(rule_, step_ms) ? 1 : 0, torch::kInt32);
    if (placement_.world_size > 1) {
      std::vector<at::Tensor> tensors{stop};
      placement_.group->broadcast(tensors)->wait();
    }
    return stop.item<int>() != 0;
  }

 private:
  const Job& job_;
  const Placement& placement_;
  StoppingRule rule_;
};

void report_memory(const Case& work, const Placement& placement, RankReport& report) {
  for (std::size_t i = 0; i < placement.devices.size(); ++i) {
    const auto place = static_cast<std::size_t>(placement.rank) + i;
    DeviceMemory memory;
    memory.device = place < work.gpus.size() ? work.gpus[place] : static_cast<int>(place);
    memory.peak_bytes = peak_memory(placement.devices[i]);
    report.memory.push_back(memory);
  }
  const bool cpu = placement.devices[0].is_cpu();
  report.facts["memory"] = cpu ? "largest resident set of the process" : "peak of the allocator";
}

void report_communication(const CommunicationTimes& times, StepSample& sample, RankReport& report) {
  CommunicationSample communication;
  if (times.compute_ms >= 0) communication.compute_ms = times.compute_ms;
  communication.communication_ms = times.communication_ms;
  communication.exposed_ms = times.exposed_ms;
  communication.all_reduce_ms = times.all_reduce_ms;
  bench::add_communication(communication, sample);
  report.counters["bytes_communicated"] = times.sent_bytes;
}

StepSample sample_of(const StepTimes& times, int step, int rank) {
  StepSample sample;
  sample.step = step;
  sample.rank = rank;
  sample.wall_ms = times.wall_ms;
  sample.device_ms = times.device_ms;
  sample.phase_ms = times.phase_ms;
  return sample;
}

}  // namespace

void run_measurement(const Job& job, Placement placement, JobContext& context, RankReport& report) {
  Trainer trainer(job.work, placement);
  const auto timer = make_phase_timer(placement.devices);
  IgnorePhases ignore;
  for (int step = 0; step < job.work.warmup; ++step) {
    context.channel().phase("warm-up " + std::to_string(step));
    trainer.step(ignore);
  }
  timer->begin_step();
  (void)timer->end_step();
  reset_peaks(placement.devices);
  Decision decision(job, placement);
  std::vector<double> step_ms;
  const auto communication = context.communication();
  context.channel().phase("timed steps");
  while (!decision.enough(step_ms)) {
    // The communication timer stands inside: no share of the step can exceed the step.
    timer->begin_step();
    if (communication) communication->begin_step();
    trainer.step(*timer);
    if (communication) communication->end_step();
    const auto times = timer->end_step();
    step_ms.push_back(times.wall_ms);
    StepSample sample = sample_of(times, static_cast<int>(report.samples.size()), placement.rank);
    if (communication) report_communication(communication->times(), sample, report);
    sample.loss = trainer.last_loss();
    report.samples.push_back(std::move(sample));
    context.channel().heartbeat();
  }
  report_memory(job.work, placement, report);
  report.counters.merge(trainer.counters());
}

}  // namespace bench::training
