#include "scenarios/pitfalls/frameworks/horovod_alone.hpp"

#include "scenarios/pitfalls/program/facts.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Api;

namespace {

// allreduce, allgather, broadcast and their kin.
bool combines(const CallRef& call) {
  for (const std::string_view word : {"reduce", "gather", "broadcast", "alltoall"})
    if (facts::contains(call.call->name, word)) return true;
  return false;
}

}  // namespace

bool only_joins_horovod(const Program& program) {
  if (!program.uses(Api::hvd_init) || program.uses(Api::hvd_elastic) || program.has_ddp() ||
      program.uses(Api::init_process_group) || !facts::only_evaluates(program))
    return false;
  for (const Api api :
       {Api::hvd_rank, Api::hvd_local_rank, Api::hvd_size, Api::hvd_optimizer,
        Api::hvd_broadcast_parameters, Api::hvd_broadcast_optimizer_state, Api::hvd_other}) {
    const auto calls = program.calls(api);
    if (std::any_of(calls.begin(), calls.end(), [&](const CallRef& call) {
          return call.module == &program.root() ||
                 (combines(call) && facts::is_reachable(program, call.ref()));
        }))
      return false;
  }
  return true;
}

}  // namespace bench::pitfalls
