#include "scenarios/pitfalls/engine_states.hpp"

#include "scenarios/pitfalls/engines.hpp"
#include "scenarios/pitfalls/saved_states.hpp"

namespace bench::pitfalls {

using diagnose::Api;

std::vector<CallRef> saves_of_engines(const Program& program) {
  std::vector<CallRef> out;
  if (!program.uses(Api::deepspeed)) return out;
  for (const CallRef& load : program.calls_named("load_state_dict"))
    if (is_engine(program, load.receiver())) return out;
  for (const CallRef& save : program.calls(Api::torch_save))
    for (const CallRef& state : calls_saved(program, save))
      if (state.call->name == "state_dict" && is_engine(program, state.receiver()))
        out.push_back(state);
  return out;
}

}  // namespace bench::pitfalls
