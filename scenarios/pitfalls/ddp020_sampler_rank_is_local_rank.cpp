#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/facts.hpp"

namespace bench::pitfalls {

using diagnose::Api;

void check_sampler_rank_is_local_rank(const Program& program, Report& report) {
  if (facts::is_single_node(program)) return;
  const auto is_local = [&](Ref rank) {
    return rank && program.is_local_rank(rank) && !program.is_rank(rank);
  };
  const auto flag = [&](Ref where, std::string message, std::string help) {
    report.at(where, Confidence::likely, std::move(message)).help = std::move(help);
  };
  for (const CallRef& sampler : program.calls(Api::distributed_sampler)) {
    const Ref rank = sampler.argument(2, "rank");
    if (is_local(rank))
      flag(rank, "the sampler is given the local rank: every node reads the same shards",
           "Leave num_replicas and rank out, or pass dist.get_rank().");
    const Ref replicas = sampler.argument(1, "num_replicas");
    if (replicas && program.comes_from(replicas, Api::device_count) &&
        !program.is_world_size(replicas))
      flag(replicas,
           "num_replicas is the number of GPUs of this node: with several nodes data is read "
           "more than once",
           "Leave num_replicas and rank out, or pass dist.get_world_size().");
  }
  for (const CallRef& init : program.calls(Api::init_process_group))
    if (is_local(init.keyword("rank")))
      flag(init.keyword("rank"),
           "init_process_group is given the local rank: two nodes both have a rank 0, "
           "and the rendezvous hangs",
           "Pass the global rank (RANK), or leave rank out under torchrun.");
}

}  // namespace bench::pitfalls
