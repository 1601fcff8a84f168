#include "scenarios/pitfalls/program/handed_out.hpp"

#include "scenarios/pitfalls/program/argument_for.hpp"

#include <algorithm>
#include <string>
#include <string_view>

namespace bench::pitfalls {

using diagnose::Field;
using diagnose::Kind;

namespace {

bool only_looks(const CallRef& call) {
  constexpr std::string_view kLooks[] = {
      "print",   "len",   "str",   "repr",    "type",  "id",      "isinstance",
      "hasattr", "bool",  "float", "int",     "sum",   "list",    "format",
      "info",    "debug", "range", "warning", "watch", "summary", "state_dict"};
  return std::find(std::begin(kLooks), std::end(kLooks), call.call->name) != std::end(kLooks);
}

}  // namespace

std::vector<CallRef> calls_given(const Program& program,
                                 const std::function<bool(Ref value)>& accepts) {
  std::vector<CallRef> out;
  for (const diagnose::Module* module : program.modules())
    for (const diagnose::Call& each : module->calls()) {
      const CallRef call{module, &each};
      if (each.api != diagnose::Api::none || only_looks(call) || diagnose::makes_carrier(each.name))
        continue;
      for (const Ref value : facts::arguments_of(call)) {
        if (!value || !accepts(value)) continue;
        if (!program.callee(call) && !program.class_of_call(call) &&
            !each.path.starts_with("torch."))
          out.push_back(call);
        break;
      }
    }
  return out;
}

}  // namespace bench::pitfalls
