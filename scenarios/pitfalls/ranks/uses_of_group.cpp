#include "scenarios/pitfalls/ranks/uses_of_group.hpp"

namespace bench::pitfalls {

using diagnose::Api;

std::vector<GroupUse> uses_of_group(const Program& program) {
  std::vector<GroupUse> out;
  for (const CallRef& use : program.calls(Api::ddp))
    if (!use.argument(7, "process_group"))
      out.push_back({use, "DistributedDataParallel is built all the same"});
  for (const CallRef& use : program.calls(Api::fsdp))
    if (!use.argument(1, "process_group") && !use.has_splat() && !use.keyword("device_mesh"))
      out.push_back({use, "FullyShardedDataParallel is built all the same"});
  for (const CallRef& use : program.calls(Api::distributed_sampler))
    if (!(use.argument(1, "num_replicas") && use.argument(2, "rank")) && !use.has_splat())
      out.push_back({use, "DistributedSampler is built all the same"});
  for (const Api api : {Api::get_rank, Api::get_world_size, Api::barrier, Api::all_reduce,
                        Api::all_gather, Api::broadcast, Api::destroy_process_group})
    for (const CallRef& use : program.calls(api))
      out.push_back({use, "this asks for it all the same"});
  return out;
}

bool stands_above(const Program& program, const GroupUse& use, const GroupUse& other) {
  return use.call.module == other.call.module && use.call.call->node < other.call.call->node &&
         program.enclosing_function(use.call.ref()) == program.enclosing_function(other.call.ref());
}

}  // namespace bench::pitfalls
