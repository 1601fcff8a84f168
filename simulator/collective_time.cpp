#include "simulator/collective_time.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace bench::simulator {
namespace {

// What NCCL's constants omit, from the differences between the published sweeps (A100x8, H200x8,
// A100 4x8) and the model: launch and synchronisation of the kernels, then a ramp-up that grows
// with the square root of the transfer time and is a few per cent of gigabytes.
constexpr double kLaunchAndSyncNs = 24e3;
constexpr double kRampUpNs = 30e3;
// Broadcast and reduce pass along a chain and come in batches that one thread enqueues: each starts
// where the one before it ends. nn.DataParallel's published steps
// (results/published/dp_scaling.csv) leave 12 GB/s of a PCIe 3 link to them, which is all that
// NCCL's constants give it.
constexpr double kChainLaunchNs = 10e3;
// A rank of the chain passes a piece on when it has all of it: one step of NCCL's 4 MiB buffer,
// which has 8 (NCCL 2.30.7, src/include/comm.h and device.h).
constexpr double kChainPieceBytes = 512.0 * 1024;

// Mean errors on those sweeps (docs of the sweeps: leave-one-out for interpolation; the ratio from
// one system to another; the corrected model alone).
constexpr double kMeasuredError = 0.07;
constexpr double kScaledError = 0.20;
constexpr double kModelError = 0.30;

// The bandwidth of a tree between nodes as it is, not as the tuner handicaps it: its edges carry
// the payload up and down once, which is 2 (k - 1) / k payloads for each of k nodes, not 2; and
// what messages of middle size lose is the ramp-up below, not the tuner's table.
double reached_gb_per_s(const NcclChoice& choice, const NcclTopology& topology) {
  const bool tree = choice.algorithm == NcclAlgorithm::tree;
  if (!tree || topology.nodes < 2) return choice.gb_per_s;
  const double nodes = topology.nodes;
  return choice.gb_per_s / choice.size_factor * nodes / (nodes - 1);
}

double with_overheads(CollectiveKind kind, const NcclChoice& choice, double bytes,
                      const NcclTopology& topology) {
  const double transfer = bytes / reached_gb_per_s(choice, topology);
  if (kind == CollectiveKind::broadcast || kind == CollectiveKind::reduce) {
    const double fill = (topology.ranks - 1) * std::min(bytes, kChainPieceBytes) / choice.gb_per_s;
    return kChainLaunchNs + choice.latency_ns + transfer + fill;
  }
  return kLaunchAndSyncNs + choice.latency_ns + transfer + std::sqrt(kRampUpNs * transfer);
}

// Nearest first in what matters most: inside a node or across nodes, then the rank count. Nothing
// that depends on a bandwidth, so that a faster link never changes the curve.
const CollectiveCurve* nearest_curve(const Machine& machine, const NcclTopology& topology) {
  const CollectiveCurve* best = nullptr;
  double best_distance = std::numeric_limits<double>::infinity();
  for (const CollectiveCurve& curve : machine.collectives) {
    const bool crosses = curve.nodes > 1;
    const double kind = crosses == (topology.nodes > 1) ? 0 : 100;
    const double distance =
        kind + std::abs(std::log2(static_cast<double>(curve.ranks) / topology.ranks));
    if (distance >= best_distance) continue;
    best_distance = distance;
    best = &curve;
  }
  return best;
}

bool same_system(const NcclTopology& a, const NcclTopology& b) {
  auto near = [](double x, double y) { return std::abs(x - y) <= 1e-6 * std::max(x, y); };
  return a.ranks == b.ranks && a.nodes == b.nodes && near(a.ring_gb_per_s, b.ring_gb_per_s) &&
         near(a.network_gb_per_s, b.network_gb_per_s) && a.nvlink == b.nvlink &&
         a.reduces_in_switch == b.reduces_in_switch;
}

double log_log(const std::pair<double, double>& a, const std::pair<double, double>& b, double x,
               bool never_falling) {
  double slope = std::log(b.second / a.second) / std::log(b.first / a.first);
  if (never_falling) slope = std::max(slope, 0.0);
  return a.second * std::exp(slope * std::log(x / a.first));
}

}  // namespace

NcclTopology topology_of(const CollectiveCurve& curve) {
  return {curve.ranks,
          curve.nodes,
          curve.ring_gb_per_s,
          curve.network_gb_per_s,
          curve.compute_capability,
          curve.nvlink,
          curve.reduces_in_switch};
}

double interpolate_curve(const std::vector<std::pair<double, double>>& points, double bytes) {
  if (bytes <= points.front().first) return log_log(points[0], points[1], bytes, true);
  const std::size_t last = points.size() - 1;
  if (bytes >= points[last].first) {
    // Anchored at the last point, so that the curve is continuous there.
    const auto& a = points[last - 1];
    const auto& b = points[last];
    const double slope = std::max(0.0, std::log(b.second / a.second) / std::log(b.first / a.first));
    return b.second * std::exp(slope * std::log(bytes / b.first));
  }
  const auto after =
      std::upper_bound(points.begin(), points.end(), bytes,
                       [](double value, const auto& point) { return value < point.first; });
  return log_log(*(after - 1), *after, bytes, false);
}

double corrected_nccl_ns(CollectiveKind kind, double bytes, const NcclTopology& topology) {
  double least = std::numeric_limits<double>::infinity();
  for (const NcclChoice& choice : nccl_choices(kind, bytes, topology)) {
    least = std::min(least, with_overheads(kind, choice, bytes, topology));
  }
  return least;
}

CollectiveModel::CollectiveModel(const Machine& machine, const NcclTopology& topology)
    : topology_(topology), curve_(nearest_curve(machine, topology)) {
  if (curve_ == nullptr) return;
  reference_topology_ = topology_of(*curve_);
  exact_ = same_system(reference_topology_, topology_);
}

std::string CollectiveModel::model_basis(CollectiveKind kind, double bytes) const {
  const NcclChoice choice = nccl_choice(kind, bytes, topology_);
  return std::string("NCCL's model with its corrections (") +
         nccl_algorithm_name(choice.algorithm) + ", " + nccl_protocol_name(choice.protocol) + ")";
}

CollectiveEstimate CollectiveModel::estimate(CollectiveKind kind, double bytes) const {
  CollectiveEstimate estimate;
  if (topology_.ranks < 2 || kind == CollectiveKind::none) return estimate;
  const double payload = kind == CollectiveKind::barrier ? 1 : std::max(bytes, 1.0);
  const double model = corrected_nccl_ns(kind, payload, topology_);
  if (curve_ == nullptr) {
    estimate = {model, Provenance::specification, kModelError, model_basis(kind, payload)};
  } else {
    const double measured = interpolate_curve(curve_->points, payload);
    const double reference =
        corrected_nccl_ns(CollectiveKind::all_reduce, payload, reference_topology_);
    const bool direct = exact_ && kind == CollectiveKind::all_reduce;
    estimate.ns = measured * (model / reference);
    estimate.provenance = direct ? curve_->provenance : Provenance::scaled;
    estimate.relative_error = direct ? kMeasuredError : kScaledError;
    estimate.basis = (direct ? "measured on " : "scaled from ") + curve_->name;
  }
  estimate.ns = std::max(estimate.ns, least_collective_ns(kind, bytes, topology_));
  return estimate;
}

}  // namespace bench::simulator
