#include "scenarios/pitfalls/files/state_keys.hpp"

#include "scenarios/pitfalls/program/words.hpp"

#include <string_view>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Kind;

bool changes_keys(const Program& program) {
  for (const std::string_view word :
       {"\"module.", "'module.", "\"^module", "'^module", "consume_prefix", "de_parallel", "[7:]",
        ".split('.')[1:]", ".split(\".\")[1:]", "startswith('module", "startswith(\"module"})
    if (program.mentions(word)) return true;
  return false;
}

bool is_mended_out_of_sight(const Program& program) {
  if (!program.uses(Api::torch_load)) return false;
  for (const diagnose::Module* module : program.modules())
    for (const diagnose::Call& made : module->calls()) {
      const CallRef call{module, &made};
      if (!says_any(made.name, {"fix", "strip", "clean", "legacy", "remap", "rename", "prefix",
                                "convert_state", "remove_m", "copystate", "copy_state"}) ||
          program.callee(call))
        continue;
      // model.load_state_dict(copy_state_dict(parts["model"]))
      const CallRef taker =
          program.as_call(call.ref().with(module->tree().ancestor(made.node, Kind::call)));
      if (taker && taker.call->name == "load_state_dict") return true;
      for (std::size_t i = 0; const Ref given = call.positional(i); ++i)
        if (const CallRef load = program.made_by(given); load && load.call->api == Api::torch_load)
          return true;
    }
  return false;
}

}  // namespace bench::pitfalls
