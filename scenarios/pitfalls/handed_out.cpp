#include "scenarios/pitfalls/handed_out.hpp"

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
      if (each.api != diagnose::Api::none || only_looks(call)) continue;
      const Ref arguments = call.ref().child(Field::arguments);
      if (!arguments) continue;
      const auto& tree = module->tree();
      for (auto at = tree[arguments.node].first_child; at != diagnose::kNoNode;
           at = tree[at].next_sibling) {
        Ref value = arguments.with(at);
        if (value.kind() == Kind::keyword_argument) value = value.child(Field::value);
        if (!value || !accepts(value)) continue;
        if (!program.callee(call) && !program.class_of_call(call) &&
            !module->qualified(each.function).starts_with("torch."))
          out.push_back(call);
        break;
      }
    }
  return out;
}

}  // namespace bench::pitfalls
