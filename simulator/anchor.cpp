#include "simulator/anchor.hpp"

#include "bench/core/error.hpp"
#include "bench/core/units.hpp"

#include <algorithm>
#include <cmath>

namespace bench::simulator {
namespace {

constexpr double kLeastScale = 1e-4;
constexpr double kMostScale = 1e4;
// Bisection in log(scale): 2^-40 of eight decades is far below a nanosecond of a second.
constexpr int kBisections = 40;

class Solver {
 public:
  Solver(const OperationGraph& single, const Machine& machine, SimulationOptions options)
      : single_(single), machine_(machine), options_(std::move(options)) {
    options_.keep_intervals = false;
  }

  double step_ns(double kernel_scale, double host_scale) {
    options_.kernel_scale = kernel_scale;
    options_.host_scale = host_scale;
    return static_cast<double>(simulate(single_, machine_, options_).timeline.step_ns);
  }

  // The scale at which `step` is `target`; step times never fall with a scale.
  template <class Step>
  double solve(Step step, double target) {
    if (step(kLeastScale) > target || step(kMostScale) < target) {
      throw UsageError("no anchor: a single-device step of " +
                       format_duration_ns(std::llround(target)) +
                       " is out of reach; simulated without an anchor it takes " +
                       format_duration_ns(std::llround(step_ns(1, 1))));
    }
    double low = std::log(kLeastScale);
    double high = std::log(kMostScale);
    for (int i = 0; i < kBisections; ++i) {
      const double middle = (low + high) / 2;
      (step(std::exp(middle)) < target ? low : high) = middle;
    }
    return std::exp(high);
  }

 private:
  const OperationGraph& single_;
  const Machine& machine_;
  SimulationOptions options_;
};

}  // namespace

Anchor anchor_to_single(const OperationGraph& single, const Machine& machine,
                        SimulationOptions options, double measured_step_ns) {
  Solver solver(single, machine, std::move(options));
  const double gpu_only = solver.step_ns(1, 0);
  const double host_only = solver.step_ns(0, 1);
  Anchor anchor;
  anchor.host_bound = host_only > gpu_only;
  const bool both_too_slow = std::min(host_only, gpu_only) > measured_step_ns;
  if (both_too_slow) {
    const double scale =
        solver.solve([&](double both) { return solver.step_ns(both, both); }, measured_step_ns);
    anchor.kernel_scale = anchor.host_scale = scale;
  } else if (anchor.host_bound) {
    anchor.host_scale =
        solver.solve([&](double host) { return solver.step_ns(1, host); }, measured_step_ns);
  } else {
    anchor.kernel_scale =
        solver.solve([&](double kernels) { return solver.step_ns(kernels, 1); }, measured_step_ns);
  }
  return anchor;
}

}  // namespace bench::simulator
