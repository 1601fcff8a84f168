// A loopback port for the rendezvous of one job's ranks.
#pragma once

#include "bench/launch/child_process.hpp"

namespace bench {

// A free port that the system gives to nobody else while this exists. Its socket does not listen,
// so that rank 0, which allows addresses to be reused as PyTorch's store does, can.
class ReservedPort {
 public:
  ReservedPort();  // MachineError where there is none

  int number() const { return number_; }

 private:
  FileDescriptor socket_;
  int number_ = 0;
};

}  // namespace bench
