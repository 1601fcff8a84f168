// Measures what numeric execution on a virtual GPU costs: the same training step on `cpu` and on
// `vgpu`, in turns in one process with one thread, and the median of the paired ratios. Prints one
// row of docs/performance.md for each model. Usage: vgpu_overhead [ROUNDS [MODEL|LABEL...]]
#include "training/devices/process_memory.hpp"
#include "training/devices/vgpu.hpp"
#include "training/strategies/trainer.hpp"

#include <torch/torch.h>

#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace bench::training {
namespace {

constexpr int kRounds = 41;
constexpr int kWarmup = 3;

struct Subject {
  const char* name;
  const char* label;
  Scale scale;
  std::vector<std::int64_t> input_shape;  // empty: the catalogue's
  std::int64_t batch;
  int steps;  // in one round, so that a round is long against the clock
};
// All parameters and hardly any arithmetic, whole and reduced; and networks of full width.
const std::vector<Subject>& subjects() {
  static const std::vector<Subject> all{
      {"mlp", "mlp", Scale::full, {}, 16, 1},
      {"mlp", "mlp twin", Scale::twin, {}, 16, 10},
      {"resnet18", "resnet18 3x64x64", Scale::full, {3, 64, 64}, 8, 1},
      {"resnet50", "resnet50 3x64x64", Scale::full, {3, 64, 64}, 8, 1}};
  return all;
}

double seconds(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Pages that the system had to provide: memory that malloc gave back costs them anew.
double page_faults() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_minflt);
}

struct Times {
  double wall_ms = 0;
  double cpu_ms = 0;  // of all threads: what a busy machine does not add to
  double faults = 0;
};

class Side {
 public:
  Side(const Subject& subject, DeviceKind kind) : steps_(subject.steps) {
    Case work;
    work.model.name = subject.name;
    work.model.input_shape = subject.input_shape;
    work.batch = subject.batch;
    work.device = kind;
    work.execute = Execute::numeric;
    Placement placement;
    placement.devices = {kind == DeviceKind::vgpu ? vgpu_device(0) : at::Device(at::kCPU)};
    TrainerOptions options;
    options.scale = subject.scale;
    trainer_ = std::make_unique<Trainer>(work, placement, options);
  }

  Times run() {
    const double wall = seconds(CLOCK_MONOTONIC);
    const double cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
    const double faults = page_faults();
    for (int step = 0; step < steps_; ++step) trainer_->step(ignore_);
    loss_ = trainer_->last_loss();
    return {1e3 * (seconds(CLOCK_MONOTONIC) - wall) / steps_,
            1e3 * (seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu) / steps_,
            (page_faults() - faults) / steps_};
  }
  double loss() const { return loss_; }

 private:
  int steps_;
  std::unique_ptr<Trainer> trainer_;
  IgnorePhases ignore_;
  double loss_ = 0;
};

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// False where the two sides do not train alike: such a comparison means nothing.
bool compare(const Subject& subject, int rounds) {
  Side cpu(subject, DeviceKind::cpu);
  Side vgpu(subject, DeviceKind::vgpu);
  std::vector<double> cpu_ms, vgpu_ms, wall_ratios, cpu_time_ratios, cpu_faults, vgpu_faults;
  for (int round = -kWarmup; round < rounds; ++round) {
    const bool cpu_first = round % 2 == 0;
    const Times first = cpu_first ? cpu.run() : vgpu.run();
    const Times second = cpu_first ? vgpu.run() : cpu.run();
    if (cpu.loss() != vgpu.loss()) {
      std::fprintf(stderr, "%s: losses differ: cpu %.17g, vgpu %.17g\n", subject.name, cpu.loss(),
                   vgpu.loss());
      return false;
    }
    if (round < 0) continue;
    const Times& on_cpu = cpu_first ? first : second;
    const Times& on_vgpu = cpu_first ? second : first;
    cpu_ms.push_back(on_cpu.wall_ms);
    vgpu_ms.push_back(on_vgpu.wall_ms);
    wall_ratios.push_back(on_vgpu.wall_ms / on_cpu.wall_ms);
    cpu_faults.push_back(on_cpu.faults);
    vgpu_faults.push_back(on_vgpu.faults);
    cpu_time_ratios.push_back(on_vgpu.cpu_ms / on_cpu.cpu_ms);
  }
  std::printf(
      "| a numeric vgpu step against the same step on `cpu`: %s, batch %d | %+.1f %% "
      "(%.2f against %.2f ms, median of %d pairs; processor time %+.1f %%; "
      "%.0f against %.0f page faults a step) | at most +5 %% | "
      "`scripts/paired_vgpu` |\n",
      subject.label, static_cast<int>(subject.batch), 100 * (median(wall_ratios) - 1),
      median(vgpu_ms), median(cpu_ms), rounds, 100 * (median(cpu_time_ratios) - 1),
      median(vgpu_faults), median(cpu_faults));
  std::fflush(stdout);
  return true;
}

bool wanted(const Subject& subject, int count, char** names) {
  return count == 0 || std::any_of(names, names + count, [&](const std::string& name) {
           return name == subject.name || name == subject.label;
         });
}

int compare_all(int argc, char** argv) {
  const int rounds = argc > 1 ? std::max(1, std::atoi(argv[1])) : kRounds;
  at::set_num_threads(1);
  register_vgpu({1, Execute::numeric, 0});
  bool alike = true;
  for (const Subject& subject : subjects()) {
    if (wanted(subject, std::max(0, argc - 2), argv + 2)) alike &= compare(subject, rounds);
  }
  return alike ? 0 : 1;
}

}  // namespace
}  // namespace bench::training

int main(int argc, char** argv) {
  // As bench-worker does; BENCH_MALLOC=default leaves malloc alone, to see what that is worth.
  const char* heap = std::getenv("BENCH_MALLOC");
  if (heap == nullptr || std::string(heap) != "default") bench::training::set_up_process_memory();
  return bench::training::compare_all(argc, argv);
}
