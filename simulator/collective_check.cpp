#include "simulator/collective_check.hpp"

#include "simulator/collective_time.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

namespace bench::simulator {
namespace {

constexpr double kLeastBucketBytes = 1 << 20;
constexpr double kMostBucketBytes = 64 << 20;

using Predict = std::function<double(std::size_t point)>;

// The points at the ends of a sweep have no neighbour to interpolate with: `margin` leaves them
// out.
CollectiveCheck check(const std::string& method, const CollectiveCurve& curve, std::size_t margin,
                      const Predict& predicted_ns) {
  CollectiveCheck result;
  result.method = method;
  result.curve = curve.name;
  int buckets = 0;
  for (std::size_t i = margin; i + margin < curve.points.size(); ++i) {
    const auto& [bytes, ns] = curve.points[i];
    const double error = std::abs(predicted_ns(i) / ns - 1);
    ++result.points;
    result.mean_error += error;
    result.worst_error = std::max(result.worst_error, error);
    if (bytes < kLeastBucketBytes || bytes > kMostBucketBytes) continue;
    ++buckets;
    result.bucket_error += error;
  }
  result.mean_error /= std::max(result.points, 1);
  result.bucket_error /= std::max(buckets, 1);
  return result;
}

CollectiveCheck without_the_size(const CollectiveCurve& curve) {
  return check("interpolated, the size left out", curve, 1, [&](std::size_t i) {
    auto rest = curve.points;
    rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(i));
    return interpolate_curve(rest, curve.points[i].first);
  });
}

CollectiveCheck without_the_curve(const CollectiveCurve& curve,
                                  const std::vector<CollectiveCurve>& all) {
  Machine machine;
  for (const CollectiveCurve& other : all) {
    if (other.name != curve.name) machine.collectives.push_back(other);
  }
  const CollectiveModel model(machine, topology_of(curve));
  return check("scaled from another system", curve, 0, [&](std::size_t i) {
    return model.ns(CollectiveKind::all_reduce, curve.points[i].first);
  });
}

CollectiveCheck model_alone(const CollectiveCurve& curve) {
  const NcclTopology topology = topology_of(curve);
  return check("NCCL's model, corrected", curve, 0, [&](std::size_t i) {
    return corrected_nccl_ns(CollectiveKind::all_reduce, curve.points[i].first, topology);
  });
}

}  // namespace

std::vector<CollectiveCheck> check_collectives() {
  const std::vector<CollectiveCurve> curves = collective_catalog();
  std::vector<CollectiveCheck> checks;
  for (const CollectiveCurve& curve : curves) checks.push_back(without_the_size(curve));
  for (const CollectiveCurve& curve : curves) checks.push_back(without_the_curve(curve, curves));
  for (const CollectiveCurve& curve : curves) checks.push_back(model_alone(curve));
  return checks;
}

}  // namespace bench::simulator
