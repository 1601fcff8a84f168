#include "scenarios/pitfalls/unmoved_module.hpp"

#include "scenarios/pitfalls/argument_for.hpp"
#include "scenarios/pitfalls/facts.hpp"
#include "scenarios/pitfalls/words.hpp"

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

}  // namespace bench::pitfalls
