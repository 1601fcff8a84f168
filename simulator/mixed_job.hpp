// A job on nodes of several kinds. GPUs of one kind of node do equal work at equal speed and stay
// collapsed; a collective moves at the pace of the kind of node that is slowest at it.
#pragma once

#include "simulator/collective_time.hpp"
#include "simulator/machine.hpp"
#include "simulator/topology.hpp"

#include <vector>

namespace bench::simulator {

// The GPUs of a job in nodes of one kind.
struct JobPart {
  const Machine* machine = nullptr;  // of this kind of node only
  std::vector<int> gpus;             // counted within it
  Topology topology;                 // of these GPUs
  NcclTopology job;                  // all GPUs of the job, as if all nodes were of this kind
};

// In the order of the machine's groups; groups without a GPU of the job are left out. A machine
// whose nodes are alike is one part. `machine` must outlive the parts.
std::vector<JobPart> job_parts(const Machine& machine, const std::vector<int>& gpus);

// Collectives between all ranks of a job.
class JobCollectives {
 public:
  explicit JobCollectives(const std::vector<JobPart>& parts);

  // Of the kind of node that takes longest.
  CollectiveEstimate estimate(CollectiveKind kind, double bytes) const;
  std::int32_t ranks() const { return models_.front().topology().ranks; }

 private:
  std::vector<CollectiveModel> models_;
};

}  // namespace bench::simulator
