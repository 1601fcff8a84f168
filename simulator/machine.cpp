#include "simulator/machine.hpp"

#include <algorithm>
#include <cmath>

namespace bench::simulator {
namespace {

constexpr const char* kProvenanceNames[] = {"measured", "scaled", "specification", "recalled"};
constexpr double kBytesPerGib = 1024.0 * 1024 * 1024;

}  // namespace

const char* provenance_name(Provenance provenance) {
  return kProvenanceNames[static_cast<int>(provenance)];
}

double EfficiencyCurve::at(double x) const {
  if (points.empty()) return 1;
  if (x <= points.front().first) return points.front().second;
  if (x >= points.back().first) return points.back().second;
  const auto after =
      std::upper_bound(points.begin(), points.end(), x,
                       [](double value, const auto& point) { return value < point.first; });
  const auto before = after - 1;
  const double share = std::log(x / before->first) / std::log(after->first / before->first);
  return before->second * std::pow(after->second / before->second, share);
}

std::uint64_t GpuSpec::memory_bytes() const {
  return static_cast<std::uint64_t>(memory_gib.value * kBytesPerGib);
}

std::int32_t Machine::gpu_count() const {
  if (groups.empty()) return node.gpus * node_count;
  std::int32_t gpus = 0;
  for (const Machine& group : groups) gpus += group.gpu_count();
  return gpus;
}

Provenance Machine::provenance() const {
  const Provenance worst = std::max(
      {gpu.memory_bandwidth.provenance, gpu.fp32_tflops.provenance, gpu.pcie_bandwidth.provenance});
  if (node.nvlink == NvlinkKind::none) return worst;
  return std::max(worst, gpu.nvlink_bandwidth.provenance);
}

}  // namespace bench::simulator
