// verify and reference: a few optimizer steps from a fixed seed, answered with a fingerprint.
#include "training/jobs/job_runner.hpp"

#include <ATen/Context.h>

namespace bench::training {
namespace {

// A CUDA run is compared with another one bit for bit as far as its kernels allow.
void ask_for_reproducible_kernels() {
  at::globalContext().setDeterministicCuDNN(true);
  at::globalContext().setBenchmarkCuDNN(false);
  at::globalContext().setAllowTF32CuDNN(false);
  at::globalContext().setFloat32MatmulPrecision("highest");
}

}  // namespace

void run_training_check(const Job& job, Placement placement, JobContext& context,
                        RankReport& report) {
  ask_for_reproducible_kernels();
  TrainerOptions options;
  options.keep_start = true;
  options.fresh_batches = true;
  // In float32, BatchNorm over few samples lets two correct runs drift apart by percents within
  // three steps; in float64 a difference is a fault.
  options.double_precision = true;
  // Where the case itself computes no values, its reduced twin does.
  const bool shapes = job.work.device == DeviceKind::vgpu && job.work.execute == Execute::shape;
  options.scale = shapes ? Scale::twin : Scale::full;
  if (job.kind == JobKind::reference) options.reference = &job;
  report.facts["scale"] = shapes ? "twin" : "full";
  Trainer trainer(job.work, std::move(placement), options);
  for (int step = 0; step < job.steps; ++step) {
    ChannelPhases phases(context.channel(), step);
    trainer.step(phases);
  }
  report.fingerprint = trainer.fingerprint();
  report.counters = trainer.counters();
}

}  // namespace bench::training
