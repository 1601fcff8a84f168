#include "scenarios/pitfalls/wrappers/inner_steps.hpp"

#include "scenarios/pitfalls/wrappers/bypass.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::FunctionRef;

namespace {

constexpr int kMethods = 3;  // from the step to the backward pass

void add_steps(const Program& program, FunctionRef method, int depth, std::vector<CallRef>& out) {
  if (!method || depth > kMethods) return;
  const auto cls = program.enclosing_class({method.module, method.function->node});
  if (!cls) return;
  for (const CallRef& site : program.call_sites(method)) {
    const Ref object = site.receiver();
    if (!object) continue;
    const bool is_known = std::any_of(
        out.begin(), out.end(), [&](const CallRef& each) { return each.ref() == site.ref(); });
    if (!is_known && wrapper_of_inner(program, object) != nullptr) out.push_back(site);
    if (object.text() != "self" || program.enclosing_class(site.ref()) != cls) continue;
    const FunctionRef caller = program.enclosing_function(site.ref());
    if (caller != method) add_steps(program, caller, depth + 1, out);
  }
}

}  // namespace

std::vector<CallRef> steps_of_inner(const Program& program) {
  std::vector<CallRef> out;
  for (const CallRef& backward : program.calls_named("backward"))
    add_steps(program, program.enclosing_function(backward.ref()), 0, out);
  return out;
}

}  // namespace bench::pitfalls
