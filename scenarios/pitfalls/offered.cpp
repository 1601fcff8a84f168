// Functions of a file that is looked at alone, as a library: what calls them is not at hand.
#include "scenarios/pitfalls/facts.hpp"

#include <algorithm>

namespace bench::pitfalls::facts {

using diagnose::ClassRef;
using diagnose::FunctionRef;
using diagnose::Wrap;

namespace {

// A file given as it is, whose functions nothing in it calls: what uses it is not at hand.
bool is_library(const Program& program) {
  const diagnose::Module& root = program.root();
  if (program.modules().size() > 1 || root.has_main_guard()) return false;
  const auto& calls = root.calls();
  return std::none_of(calls.begin(), calls.end(), [&](const diagnose::Call& made) {
    const CallRef call{&root, &made};
    return !program.enclosing_function(call.ref()) && !program.enclosing_class(call.ref()) &&
           (program.callee(call) || program.class_of_call(call));
  });
}

}  // namespace

// Something of this file works in ranks wherever it is used: a class or function that joins a
// process group or wraps a model, and whatever stands in the same class or function.
bool is_offered(const Program& program, FunctionRef function) {
  if (function.module != &program.root() || !program.call_sites(function).empty()) return false;
  const Ref body{function.module, function.function->body};
  const ClassRef owner = program.enclosing_class(body);
  const auto beside = [&](Ref node) {
    return owner ? program.enclosing_class(node) == owner
                 : program.enclosing_function(node) == function;
  };
  const auto& wraps = program.wraps();
  return std::any_of(wraps.begin(), wraps.end(),
                     [&](const Wrap& wrap) { return beside(wrap.call.ref()); }) &&
         is_library(program);
}

}  // namespace bench::pitfalls::facts
