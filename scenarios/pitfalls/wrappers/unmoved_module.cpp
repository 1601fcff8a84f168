#include "scenarios/pitfalls/wrappers/unmoved_module.hpp"

#include "diagnose/model/made_at.hpp"
#include "scenarios/pitfalls/program/argument_for.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"

#include <algorithm>
#include <cctype>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Wrap;

namespace {

// A default device, or a model that builds itself on the GPU.
bool may_be_built_on_gpu(const Program& program) {
  for (const char* word : {"set_default_device", "set_default_tensor_type", "device_map"})
    if (program.mentions(word)) return true;
  return program.uses(Api::set_device) || program.uses(Api::device_context);
}

// Net(args), of a class in sight or known by its capital alone, that is given no device.
bool is_built_here(const Program& program, const Wrap& wrap) {
  const CallRef made = program.made_by(wrap.module);
  if (!made || made.call->name.empty()) return false;
  const bool is_class = !wrap.classes.empty() ||
                        std::isupper(static_cast<unsigned char>(made.call->name.front())) != 0;
  if (!is_class || made.has_splat()) return false;
  const auto arguments = facts::arguments_of(made);
  return std::none_of(arguments.begin(), arguments.end(), [](Ref argument) {
    return says_any(argument.text(), {"device", "cuda", "gpu"});
  });
}

// What moves models, or may: a call outside of any loop, or with a name for a model.
bool may_move_module(const Program& program, const CallRef& call) {
  return program.loops_around(call.ref()).empty() ||
         says_any(call.receiver().text(), {"model", "net", "module", "self", "coder"});
}

}  // namespace

bool is_never_moved(const Program& program, const Wrap& wrap) {
  if (!is_built_here(program, wrap) || may_be_built_on_gpu(program)) return false;
  bool moves_batches = false;
  for (const char* name : {"cuda", "to"})
    for (const CallRef& call : program.calls_named(name)) {
      if (!call.receiver()) continue;
      if (may_move_module(program, call)) return false;
      moves_batches = moves_batches || call.call->name == "cuda";
    }
  return moves_batches;
}

namespace {

// self.train() between the two lines, where neither branch nor loop parts them.
bool trains_between(const Program& program, const CallRef& wrap, const CallRef& move) {
  const auto function = program.enclosing_function(move.ref());
  if (wrap.module != move.module || program.enclosing_function(wrap.ref()) != function)
    return false;
  const auto& calls = wrap.module->calls();
  return std::any_of(calls.begin(), calls.end(), [&](const diagnose::Call& each) {
    const CallRef call{wrap.module, &each};
    return each.node > wrap.call->node && each.node < move.call->node && program.callee(call) &&
           program.enclosing_function(call.ref()) == function &&
           !facts::exclusive(call.ref(), wrap.ref()) && !facts::exclusive(call.ref(), move.ref()) &&
           program.subtree_calls(
               call.ref(), [](const CallRef& inner) { return inner.call->name == "backward"; });
  });
}

}  // namespace

bool is_moved_after_training(const Program& program, const Wrap& wrap,
                             const std::vector<CallRef>& moves) {
  const CallRef made = diagnose::made_at(program, wrap.call);
  return !moves.empty() && !may_be_built_on_gpu(program) &&
         std::all_of(moves.begin(), moves.end(),
                     [&](const CallRef& move) { return trains_between(program, made, move); });
}

}  // namespace bench::pitfalls
