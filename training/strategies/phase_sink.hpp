// Where a training step says which phase it is in. The sinks time phases with CUDA events or the
// host clock, label the operations of a recording, or ignore it.
#pragma once

#include "simulator/operation_graph.hpp"

namespace bench::training {

using simulator::Phase;

class PhaseSink {
 public:
  virtual ~PhaseSink() = default;
  // The step enters `phase`, and the phase before it ends. Called by the thread that drives the
  // step.
  virtual void enter(Phase phase) = 0;
  // The same, from the autograd thread of the primary device while the driving thread waits for the
  // backward pass: the start of DataParallel's reduction.
  virtual void enter_in_backward(Phase) {}
};

class IgnorePhases final : public PhaseSink {
 public:
  void enter(Phase) override {}
};

}  // namespace bench::training
