// The sampler is told the GPUs of a node and the rank within it, in a job of two nodes: both nodes
// read the same shards. Two nodes are acted out here by the processes of one, half of them each.
#include "training/data/distributed_sampler.hpp"
#include "training/pitfalls/state_experiments.hpp"

namespace bench::training {
namespace {

constexpr int kActedNodes = 2;
constexpr std::int64_t kShardedSamples = 100;

}  // namespace

void sampler_rank_is_local_rank(Lab& lab) {
  const int device_count = lab.world_size() / kActedNodes;  // as a node's processes see it
  const int local_rank = lab.rank() % device_count;
  const int replicas = lab.cured() ? lab.world_size() : device_count;
  const int rank = lab.cured() ? lab.rank() : local_rank;
  Json& evidence = lab.evidence();
  evidence["sampler_replicas"] = replicas;
  evidence["sampler_rank"] = rank;
  evidence["dataset_size"] = kShardedSamples;
  evidence["indices"] =
      DistributedSampler({.length = kShardedSamples, .world_size = replicas, .rank = rank})
          .indices();
}

}  // namespace bench::training
