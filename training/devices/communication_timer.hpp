// Times the collectives of a training step on real devices while it runs: how long at least one was
// on its way, how much of that the computation did not hide, and how long each all-reduce took.
//
// The process group of rendezvous.hpp hands every collective to issue(), which takes the time twice
// (before the call, and in a callback of its future) and changes nothing else: no hook is
// registered with the reducer, since a hook would also change who divides the gradients. Two clock
// readings a collective, microseconds, are what measuring adds to a step.
//
// On a CPU the thread that trains is the device. It computes as long as its own processor clock
// runs, and a collective is exposed as far as that clock stands still. On CUDA the computing stream
// is taken to work until the last all-reduce is issued, which is when the last gradient exists;
// what communicates later is exposed, and so is the broadcast of buffers, which forward waits for.
#pragma once

#include <c10/core/Device.h>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace bench::training {

enum class TimedCollective { all_reduce, broadcast };

struct CommunicationTimes {
  double compute_ms = -1;             // of the device; -1 where that cannot be told
  double communication_ms = 0;        // at least one collective was on its way
  double exposed_ms = 0;              // and the device did not compute
  std::vector<double> all_reduce_ms;  // each from its issue to its end, in order
  double sent_bytes = 0;  // by this rank, as the ring algorithms of traffic.cpp send them
};

class CommunicationTimer : public std::enable_shared_from_this<CommunicationTimer> {
 public:
  using Call = std::function<c10::intrusive_ptr<c10d::Work>()>;

  virtual ~CommunicationTimer() = default;

  // Called by the thread that trains. Collectives outside a step are not timed.
  virtual void begin_step() = 0;
  // Neither waits nor synchronizes, so that it can stand inside what another timer measures.
  virtual void end_step() = 0;
  // Of the step that ended last; waits for callbacks of its collectives that are still to come.
  virtual CommunicationTimes times() = 0;

  virtual c10::intrusive_ptr<c10d::Work> issue(TimedCollective kind, std::uint64_t payload_bytes,
                                               const Call& call) = 0;
};

// For a rank among `world_size` that trains on `device`.
std::shared_ptr<CommunicationTimer> make_communication_timer(c10::Device device, int world_size);

}  // namespace bench::training
