// Which of two nodes runs first, through the calls that lead to them.
#include "diagnose/model/program.hpp"

#include <algorithm>

namespace bench::diagnose {
namespace {

constexpr int kCallDepth = 5;

// `first` stands in the __init__ of a class whose method `second` stands in: the object is made
// before its methods run, but for those that __init__ calls.
bool makes_object_of(const Program& program, Ref first, Ref second) {
  const FunctionRef maker = program.enclosing_function(first);
  const FunctionRef method = program.enclosing_function(second);
  if (!maker || !method || !maker.function->makes_object() || maker == method ||
      maker.function->owner_class == kNoNode ||
      method.function->owner_class != maker.function->owner_class || method.module != maker.module)
    return false;
  const auto reached = program.reached({maker.module, maker.function->body});
  return std::find(reached.begin(), reached.end(), method) == reached.end();
}

}  // namespace

bool Program::runs_before(Ref first, Ref second) const { return runs_before(first, second, 0); }

bool Program::runs_before(Ref first, Ref second, int level) const {
  if (level > kCallDepth) return false;
  if (makes_object_of(*this, first, second)) return true;
  const Ref start = first;
  // Lift the later of the two to the function of the other through single call sites.
  for (int depth = 0; depth < kCallDepth; ++depth) {
    if (first.module == second.module &&
        first.module->function_of(first.node) == second.module->function_of(second.node)) {
      // Arguments and receivers run before the call that they belong to: Trainer().run().
      const SyntaxTree& tree = first.module->tree();
      if (tree.contains(second.node, first.node) && as_call(second)) return first != second;
      return first.node < second.node &&
             !(tree.contains(first.node, second.node) && as_call(first));
    }
    const FunctionRef function = enclosing_function(first);
    if (!function) break;
    Ref lifted;
    for (const CallRef& site : call_sites(function)) {
      lifted = site.ref();
      if (site.module == second.module &&
          site.module->function_of(site.call->node) == second.module->function_of(second.node))
        break;
    }
    if (!lifted) break;
    first = lifted;
    if (makes_object_of(*this, first, second)) return true;  // in a helper of the constructor
  }
  const FunctionRef function = enclosing_function(second);
  if (!function || call_sites(function).empty()) return false;
  const Ref site = call_sites(function).front().ref();
  return enclosing_function(site) == function ? false : runs_before(start, site, level + 1);
}

}  // namespace bench::diagnose
