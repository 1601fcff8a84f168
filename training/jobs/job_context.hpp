// What the jobs of one worker process share: its rank, its channel to the parent, the store that
// the ranks met at, and the devices it may use.
#pragma once

#include "bench/core/job.hpp"
#include "bench/core/outcome.hpp"
#include "bench/launch/worker_protocol.hpp"

#include "training/devices/communication_timer.hpp"
#include "training/strategies/trainer.hpp"

#include <torch/csrc/distributed/c10d/Store.hpp>

#include <string>
#include <vector>

namespace bench::training {

class JobContext {
 public:
  // `jobs` are all jobs of the process: virtual GPUs have to be registered for the largest at once.
  JobContext(RankContext ranks, WorkerChannel& channel, const std::vector<Job>& jobs);

  // Devices and process group for `work`, or why this machine cannot run it. Throws UsageError when
  // the case and the number of processes do not fit together.
  Outcome<Placement> place(const Case& work, Execute execute);

  // Names the store's keys; set before every job.
  void begin_job(int index);

  // Times the communication of the last placement's process; null on virtual GPUs, whose time is
  // simulated, and for replicas, which copy rather than communicate.
  const std::shared_ptr<CommunicationTimer>& communication() const { return communication_; }

  const RankContext& ranks() const { return ranks_; }
  WorkerChannel& channel() { return channel_; }

 private:
  c10::intrusive_ptr<c10d::ProcessGroup> connect(const Case& work, Execute execute,
                                                 at::Device device);

  RankContext ranks_;
  WorkerChannel& channel_;
  int vgpu_count_ = 1;
  int index_ = 0;
  c10::intrusive_ptr<c10d::Store> store_;
  std::shared_ptr<CommunicationTimer> communication_;
};

}  // namespace bench::training
