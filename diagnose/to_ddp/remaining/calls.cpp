// Wrappers around wrappers, passes that go by the wrapper's forward, and modules that spread their
// work over several GPUs.
#include "diagnose/to_ddp/parameterless.hpp"
#include "diagnose/to_ddp/remaining/topics.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"

#include <algorithm>

namespace bench::diagnose {
namespace {

using pitfalls::facts::contains;

// The loop gives the name something else as well: net = getattr(self, name) above the wrapper,
// net = net.module at the end of the round.
bool is_given_otherwise(const Program& program, Ref loop, Ref name, Ref wrapper) {
  const std::string_view text = name.text();
  const bool is_attribute = name.kind() == Kind::attribute;
  const auto& tree = loop.module->tree();
  for (const std::uint32_t index :
       loop.module->defs_of(text.substr(text.rfind('.') + 1), is_attribute)) {
    const Def& def = loop.module->defs()[index];
    if (!tree.contains(loop.node, def.target) || tree.text(def.target) != text) continue;
    if (def.value == kNoNode) return true;
    const CallRef moved = program.as_call({loop.module, def.value});  // net = net.cuda()
    if (!tree.contains(def.value, wrapper.node) &&
        !(moved && moved.receiver() && moved.receiver().text() == text))
      return true;
  }
  return false;
}

// if not wrapped: net = DDP(net); wrapped = True
bool is_under_flag_of_loop(const Program& program, Ref loop, Ref wrapper) {
  const auto& tree = loop.module->tree();
  const auto is_set_there = [&](std::string_view name) {
    const auto defs = loop.module->defs_of(name, false);
    return std::any_of(defs.begin(), defs.end(), [&](std::uint32_t index) {
      return tree.contains(loop.node, loop.module->defs()[index].target);
    });
  };
  return program.under(wrapper, [&](Ref condition, bool) {
    if (condition.module != loop.module || !tree.contains(loop.node, condition.node)) return false;
    for (NodeId node = condition.node; node < tree[condition.node].last; ++node)
      if (tree[node].kind == Kind::identifier && is_set_there(tree.text(node))) return true;
    return false;
  });
}

// net = DDP(net) in a loop or a function that runs in each of its rounds, and no test around it
// that asks for the wrapper.
bool wraps_again(const Left& left, const Wrap& wrap) {
  const Program& program = left.program;
  const CallRef move = program.as_call(wrap.module);
  const Ref inner =
      move && move.receiver() && !program.class_of_call(move) ? move.receiver() : wrap.module;
  const Ref loop = program.innermost_loop(wrap.call.ref());
  if (!loop ||
      program.assigned_name(wrap.call.ref()) != inner.text().substr(inner.text().rfind('.') + 1))
    return false;
  const auto& tree = loop.module->tree();
  const auto is_made_anew = [&](const Source& source) {
    return source.ref.module == loop.module && tree.contains(loop.node, source.ref.node) &&
           source.ref != wrap.call.ref() && program.wrap_made_by(source.ref) == nullptr;
  };
  const auto& sources = program.module_sources(inner);
  if (std::any_of(sources.begin(), sources.end(), is_made_anew) ||
      is_given_otherwise(program, loop, inner, wrap.call.ref()) ||
      is_under_flag_of_loop(program, loop, wrap.call.ref()))
    return false;
  return !program.under(wrap.call.ref(), [&](Ref condition, bool) {
    return contains(condition.text(), "isinstance") || contains(condition.text(), "hasattr") ||
           contains(condition.text(), "==");
  });
}

// A method of the class that runs some of its layers; a loss that it holds is none.
bool runs_layers(const Program& program, const ClassRef& cls, const FunctionRef& method) {
  for (const CallRef& call : pitfalls::facts::calls_in({method.module, method.function->body})) {
    const Ref function{call.module, call.call->function};
    if (function.kind() == Kind::attribute && function.child(Field::object).text() == "self" &&
        !cls.module->defs_of(call.call->name, true).empty() &&
        !program.method(cls, call.call->name) && may_hold_parameters(program, function) &&
        !pitfalls::says_any(call.call->name, {"loss", "criterion"}))
      return true;
  }
  return false;
}

// net.encode(x) and net.module.encode(x) of a wrapped net.
bool passes_forward_by(const Program& program, const CallRef& call) {
  Ref object = call.receiver();
  if (!object || call.call->name == "forward") return false;
  if (object.kind() == Kind::attribute && object.text().ends_with(".module"))
    object = object.child(Field::object);
  const Wrap* const wrap = program.wrap_of(object);
  if (wrap == nullptr || wrap->kind != Wrapper::ddp) return false;
  return std::any_of(wrap->classes.begin(), wrap->classes.end(), [&](const ClassRef& cls) {
    const FunctionRef method = program.method(cls, call.call->name);
    return method && runs_layers(program, cls, method);
  });
}

// self.critic of self.critic(x) and self.critic.loss(x) in the method: a layer of what is wrapped.
Ref layer_run_by(const Program& program, const ClassRef& cls, const FunctionRef& method) {
  for (const CallRef& call : pitfalls::facts::calls_in({method.module, method.function->body})) {
    Ref layer{call.module, call.call->function};
    if (call.receiver() && call.receiver().text() != "self") layer = call.receiver();
    if (layer.kind() != Kind::attribute || layer.child(Field::object).text() != "self" ||
        program.under_no_grad(call.ref()))
      continue;
    const ClassRef made = program.class_of(layer);
    if (made && program.derives_from(made, Api::module_class) &&
        !program.method(cls, layer.child(Field::attribute).text()) &&
        may_hold_parameters(program, layer))
      return layer;
  }
  return {};
}

// A backward pass comes to the layers by this call alone: it starts in the method, or from a loss
// that no forward pass of the wrapper is part of. The passes of one backward pass are counted once.
bool has_backward_of_its_own(const Program& program, const CallRef& call, const FunctionRef& method,
                             const Wrap& wrap) {
  if (program.subtree_calls({method.module, method.function->body},
                            [](const CallRef& each) { return each.call->name == "backward"; }))
    return true;
  const auto backwards = program.calls_named("backward");
  return std::any_of(backwards.begin(), backwards.end(), [&](const CallRef& backward) {
    const Ref loss = pitfalls::facts::loss_of(backward);
    if (!loss || program.enclosing_function(loss) != program.enclosing_function(call.ref()))
      return false;
    const auto behind =
        pitfalls::facts::calls_behind(program, loss, [&](Ref each) { return each == call.ref(); });
    return std::find(behind.begin(), behind.end(), call.ref()) != behind.end() &&
           std::none_of(behind.begin(), behind.end(), [&](Ref each) {
             const CallRef pass = program.as_call(each);
             return pass && program.wrap_of({pass.module, pass.call->function}) == &wrap;
           });
  });
}

// gan.critic_loss(x) in training, after parallel = DDP(gan): the bare model, whose layers run
// there.
Ref layer_run_around(const Program& program, const CallRef& call, const Wrap& wrap) {
  const CallRef move = program.as_call(wrap.module);
  const Ref inner =
      move && move.receiver() && !program.class_of_call(move) ? move.receiver() : wrap.module;
  const Ref object = call.receiver();
  if (wrap.kind != Wrapper::ddp || !object || object.kind() != Kind::identifier ||
      object.module != inner.module || object.text() != inner.text() ||
      program.assigned_name(wrap.call.ref()) == inner.text() ||
      !pitfalls::says_any(call.call->name, {"loss", "backward", "train", "optimize"}) ||
      program.loops_around(call.ref()).empty() || program.under_no_grad(call.ref()) ||
      program.is_evaluation(call.ref()))
    return {};
  for (const ClassRef& cls : wrap.classes)
    if (const FunctionRef method = program.method(cls, call.call->name);
        method && has_backward_of_its_own(program, call, method, wrap))
      if (const Ref layer = layer_run_by(program, cls, method)) return layer;
  return {};
}

}  // namespace

void tell_passes_around_wrapper(Left& left) {
  const Program& program = left.program;
  for (const Wrap& wrap : program.wraps()) {
    std::vector<Ref> places;
    Ref first;  // layer
    for (const Call& made : wrap.call.module->calls()) {
      const CallRef call{wrap.call.module, &made};
      const Ref layer = layer_run_around(program, call, wrap);
      if (!layer || !left.runs_on_every_rank(call.ref())) continue;
      places.push_back(call.ref());
      if (!first) first = layer;
    }
    if (places.empty()) continue;
    const std::string name(left.program.as_call(places.front()).receiver().text());
    left.tell(Harm::stops, places,
              "`" + name + "` is the model within the wrapper (" + place_of(wrap.call.ref()) +
                  "), and this runs layers of it (`" + std::string(first.text()) + "`, " +
                  place_of(first) +
                  ") around the wrapper's forward: DDP counts each parameter once for a pass of "
                  "its own, so a second backward pass that comes to these raises \"Expected to "
                  "mark a variable ready only once\", or their gradients are not averaged. Give "
                  "the layers that are trained here a wrapper of their own, and leave `" +
                  name + "` as a whole bare.");
  }
}

void tell_repeated_wrappers(Left& left) {
  std::vector<Ref> places;
  for (const Wrap& wrap : left.program.wraps())
    if (wrap.kind == Wrapper::ddp && left.runs_on_every_rank(wrap.call.ref()) &&
        wraps_again(left, wrap))
      places.push_back(wrap.call.ref());
  left.tell(Harm::stops, places,
            "this wraps what it has wrapped in the round before: a wrapper in a wrapper, whose "
            "keys begin with \"module.module.\". Wrap once, above the loop.");
}

std::vector<Ref> passes_beside_forward(const Left& left) {
  std::vector<Ref> out;
  const Program& program = left.program;
  for (const TrainingLoop& loop : program.training_loops())
    for (const CallRef& backward : loop.backwards) {
      const Ref loss = pitfalls::facts::loss_of(backward);
      if (!loss) continue;
      for (const Ref behind : pitfalls::facts::calls_behind(program, loss)) {
        const CallRef call = program.as_call(behind);
        if (call && passes_forward_by(program, call) && !program.under_no_grad(behind) &&
            !program.is_evaluation(behind) && left.runs_on_every_rank(behind) &&
            std::find(out.begin(), out.end(), behind) == out.end())
          out.push_back(behind);
      }
    }
  return out;
}

void tell_passes_beside_forward(Left& left) {
  for (const Ref pass : passes_beside_forward(left)) {
    const CallRef call = left.program.as_call(pass);
    const std::string name(call.call->name);
    if (left.is_found(pass, "DDP007")) continue;
    left.tell(Harm::stops, {pass},
              "this pass is part of the loss and goes to `" + name +
                  "`, not to the wrapper's forward: the wrapper has no such method, and through "
                  "`.module` no gradient of the pass is averaged. Let forward call `" +
                  name + "` by an argument, and call the wrapper.");
  }
}

void tell_lists_of_gpus(Left& left) {
  const Program& program = left.program;
  std::vector<Ref> places;
  for (const Module* module : program.modules())
    for (const Call& made : module->calls()) {
      const CallRef call{module, &made};
      const ClassRef cls = program.class_of_call(call);
      if (!cls || !program.derives_from(cls, Api::module_class)) continue;
      for (const std::string_view name : {"device_id", "device_ids", "gpu_ids", "gpus"}) {
        const Ref list = call.keyword(name);
        const Value given = list ? program.evaluate(list) : Value{};
        if (given.type == Value::Type::list && !given.items.empty() &&
            left.runs_on_every_rank(call.ref()))
          places.push_back(call.ref());
      }
    }
  left.tell(Harm::stops, places,
            "this module is given a list of GPUs, which it spreads its work over: on each rank it "
            "would take those of the others. Give it the GPU of the rank alone.");
}

}  // namespace bench::diagnose
