// How long a collective takes. Where somebody measured all-reduce on this kind of machine, the
// curve is interpolated and carried to other rank counts, sizes and wirings by the ratio of NCCL's
// model; where nobody did, NCCL's model is corrected by what it leaves out.
#pragma once

#include "simulator/machine.hpp"
#include "simulator/nccl_model.hpp"

#include <string>
#include <vector>

namespace bench::simulator {

// Log-log interpolation between the points of a measured curve; beyond its ends the slope of the
// end goes on. Never falling: more bytes take no less time at either end.
double interpolate_curve(const std::vector<std::pair<double, double>>& points, double bytes);

// The system that a curve was measured on, as NCCL sees it.
NcclTopology topology_of(const CollectiveCurve& curve);

// NCCL's model plus what it omits, in ns (see the constants in the source).
double corrected_nccl_ns(CollectiveKind kind, double bytes, const NcclTopology& topology);

struct CollectiveEstimate {
  double ns = 0;
  Provenance provenance = Provenance::specification;
  double relative_error = 0;  // the error that the same method made on published sweeps
  std::string basis;          // "measured on A100x8 NVSwitch", "scaled from ...", "NCCL's model"
};

class CollectiveModel {
 public:
  CollectiveModel(const Machine& machine, const NcclTopology& topology);

  CollectiveEstimate estimate(CollectiveKind kind, double bytes) const;
  double ns(CollectiveKind kind, double bytes) const { return estimate(kind, bytes).ns; }
  const NcclTopology& topology() const { return topology_; }

 private:
  std::string model_basis(CollectiveKind kind, double bytes) const;

  NcclTopology topology_;
  NcclTopology reference_topology_;
  const CollectiveCurve* curve_ = nullptr;  // the nearest measured one; null when there is none
  bool exact_ = false;                      // measured on this very system
};

}  // namespace bench::simulator
