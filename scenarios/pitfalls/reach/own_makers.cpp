#include "scenarios/pitfalls/reach/own_makers.hpp"

namespace bench::pitfalls {

std::vector<CallRef> made_by_itself(const Program& program, diagnose::ClassRef cls) {
  std::vector<CallRef> out;
  for (const CallRef& made : program.calls_named("cls"))
    if (!made.receiver() && program.enclosing_class(made.ref()) == cls) out.push_back(made);
  return out;
}

}  // namespace bench::pitfalls
