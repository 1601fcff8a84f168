// Anchoring: make the simulated single-device step equal one that somebody measured, and predict
// the rest from there. One measurement cannot say whether the GPU or the host was faster than
// thought; what bounds the step is scaled, and both where the measurement beats both.
#pragma once

#include "simulator/simulate.hpp"

namespace bench::simulator {

struct Anchor {
  double kernel_scale = 1;
  double host_scale = 1;
  bool host_bound = false;  // the host's issuing, not the GPU, bounds the measured step
};

// `single` is the recording of the measured program on one device; `options` gives the GPU and the
// host profile. Throws UsageError when no scale reaches `measured_step_ns`.
Anchor anchor_to_single(const OperationGraph& single, const Machine& machine,
                        SimulationOptions options, double measured_step_ns);

}  // namespace bench::simulator
