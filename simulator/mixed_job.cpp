#include "simulator/mixed_job.hpp"

#include "bench/core/error.hpp"
#include "simulator/job_wiring.hpp"

namespace bench::simulator {
namespace {

// What GPUs of one node reach of the network, which the topology of a single node does not say.
double network_of(const Machine& machine, const std::vector<int>& gpus) {
  std::vector<std::int32_t> in_node;
  for (const int gpu : gpus) in_node.push_back(gpu % machine.node.gpus);
  return network_gb_per_s(machine, in_node);
}

// Every part sees all ranks and nodes of the job.
void join(std::vector<JobPart>& parts, std::int32_t listed) {
  std::int32_t nodes = 0;
  std::int32_t ranks = 0;
  for (const JobPart& part : parts) {
    nodes += part.job.nodes;
    ranks += part.job.ranks;
  }
  if (ranks != listed) throw UsageError("a GPU is listed that the machine does not have");
  for (JobPart& part : parts) {
    if (part.job.nodes == 1 && nodes > 1) {
      part.job.network_gb_per_s = network_of(*part.machine, part.gpus);
    }
    part.job.nodes = nodes;
    part.job.ranks = ranks;
  }
}

}  // namespace

std::vector<JobPart> job_parts(const Machine& machine, const std::vector<int>& gpus) {
  std::vector<JobPart> parts;
  auto add = [&](const Machine& group, std::vector<int> of_group) {
    Topology topology(group, of_group);
    const NcclTopology job = topology.job();
    parts.push_back({&group, std::move(of_group), std::move(topology), job});
  };
  if (machine.groups.empty()) {
    add(machine, gpus);
    return parts;
  }
  std::int32_t first = 0;
  for (const Machine& group : machine.groups) {
    const std::int32_t end = first + group.gpu_count();
    std::vector<int> of_group;
    for (const int gpu : gpus) {
      if (gpu >= first && gpu < end) of_group.push_back(gpu - first);
    }
    if (!of_group.empty()) add(group, std::move(of_group));
    first = end;
  }
  join(parts, static_cast<std::int32_t>(gpus.size()));
  return parts;
}

JobCollectives::JobCollectives(const std::vector<JobPart>& parts) {
  for (const JobPart& part : parts) models_.emplace_back(*part.machine, part.job);
}

CollectiveEstimate JobCollectives::estimate(CollectiveKind kind, double bytes) const {
  CollectiveEstimate slowest = models_.front().estimate(kind, bytes);
  for (std::size_t i = 1; i < models_.size(); ++i) {
    CollectiveEstimate other = models_[i].estimate(kind, bytes);
    if (other.ns > slowest.ns) slowest = std::move(other);
  }
  return slowest;
}

}  // namespace bench::simulator
