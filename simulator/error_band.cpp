#include "simulator/error_band.hpp"

#include <algorithm>

namespace bench::simulator {
namespace {

// With a measured single-device step: the mean error of this simulator on published runs
// (docs/accuracy.md: 4.6 % over 192 rows). Without: errors that published simulators report for the
// same kind of input, measured kernels of this GPU, figures carried over from another GPU (Habitat:
// 12 % with a trace), and for data sheets what docs/accuracy.md shows of absolute steps.
constexpr double kAnchoredError = 0.05;
constexpr double kKernelErrors[] = {0.08, 0.20, 0.30, 0.35};  // by Provenance

bool anchored(const SimulationOptions& options) {
  return options.kernel_scale != 1 || options.host_scale != 1;
}

}  // namespace

ErrorBand error_band(const OperationGraph& graph, const ServiceOrder& order, const Machine& machine,
                     const OperationTimes& times, const Schedule& schedule,
                     const SimulationOptions& options) {
  std::int64_t collective_ns = 0;
  for (std::uint32_t i = 0; i < graph.operations.size(); ++i) {
    const bool counts = graph.operations[i].kind == OpKind::collective && order.unit[i] == i;
    if (counts) collective_ns += times.device_ns[i];
  }
  // Communication that hides behind compute adds no error of its own; at most all of it is exposed.
  const double step = static_cast<double>(std::max<std::int64_t>(schedule.step_ns, 1));
  const double share = std::min(1.0, static_cast<double>(collective_ns) / step);
  ErrorBand band;
  band.provenance = machine.provenance();
  const double kernels =
      anchored(options) ? kAnchoredError : kKernelErrors[static_cast<int>(band.provenance)];
  band.relative = (1 - share) * kernels + share * std::max(kernels, times.collective_error);
  band.reason = anchored(options) ? "kernels anchored to a measured step"
                                  : std::string("kernels from figures that are ") +
                                        provenance_name(band.provenance);
  if (collective_ns > 0) {
    band.reason += "; collectives: " + times.collective_basis;
    band.provenance = std::max(band.provenance, times.collective_provenance);
  }
  return band;
}

}  // namespace bench::simulator
