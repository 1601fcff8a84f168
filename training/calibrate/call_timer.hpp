// The time that a call takes on its device, as the median of repetitions: between CUDA events with
// the stream kept busy beforehand, so that issuing does not count, or by the host's clock on a CPU.
#pragma once

#include "training/calibrate/operator_calls.hpp"

#include <vector>

namespace bench::training {

struct CallTime {
  double ns = 0;      // median
  double spread = 0;  // (90th - 10th percentile) / median
};

class CallTimer {
 public:
  CallTimer(at::Device device, bool quick);

  // Warms up first. The call must not wait for the device.
  CallTime time(const Call& call) const;

 private:
  double host_sample(const Call& call, int repeats) const;
  double cuda_sample(const Call& call, int repeats, double issue_ns) const;

  at::Device device_;
  int samples_;
  double budget_ns_;
};

// Monotonic nanoseconds of the host.
double host_now_ns();
CallTime summary_of(std::vector<double> samples_ns);
void wait_for(at::Device device);

}  // namespace bench::training
