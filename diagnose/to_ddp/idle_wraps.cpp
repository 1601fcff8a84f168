#include "diagnose/to_ddp/idle_wraps.hpp"

#include "diagnose/to_ddp/trained_parts.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"

#include <algorithm>

namespace bench::diagnose {
namespace {

// What is wrapped, the model that it is a part of, or a part of it is stepped; `unseen` says so
// where it cannot be seen what an optimizer is given.
bool is_given_to_optimizer(const Program& program, const Wrap& wrap, bool unseen) {
  const auto is_same = [&](Ref trained) {
    if (trained.text() == wrap.module.text() &&
        program.enclosing_function(trained) == program.enclosing_function(wrap.call.ref()))
      return true;
    for (Ref part = trained; part; part = part.child(Field::object)) {
      if (program.wrap_of(part) == &wrap || shares_source(program, part, wrap.module)) return true;
      if (part.kind() != Kind::attribute) break;
    }
    return false;
  };
  const auto optimizers = given_to_optimizers(program);
  return std::any_of(optimizers.begin(), optimizers.end(), [&](Ref given) {
    const TrainedParts parts = trained_parts(program, given);
    return (unseen && parts.modules.empty() && parts.parameters.empty()) ||
           std::any_of(parts.modules.begin(), parts.modules.end(), is_same);
  });
}

// The name that the wrapper or what it holds has in the function.
bool is_its_name(const Program& program, const Wrap& wrap, Ref object) {
  return object && object.module == wrap.call.module &&
         (object.text() == wrap.module.text() ||
          object.text() == program.assigned_name(wrap.call.ref())) &&
         program.enclosing_function(object) == program.enclosing_function(wrap.call.ref());
}

// The call stands in the expression that makes the module: Judge(net.eval()), Judge(net).eval()
bool is_made_around(const Program& program, const Wrap& wrap, const CallRef& call) {
  const auto& sources = program.module_sources(wrap.module);
  const auto& tree = call.module->tree();
  return std::any_of(sources.begin(), sources.end(), [&](const Source& source) {
    return source.ref.module == call.module && (tree.contains(source.ref.node, call.call->node) ||
                                                call.receiver().node == source.ref.node);
  });
}

// net.eval() where it is wrapped, and no net.train().
bool is_set_to_evaluation(const Program& program, const Wrap& wrap) {
  bool evaluates = false;
  for (const std::string_view name : {"eval", "train"})
    for (const CallRef& call : program.calls_named(name)) {
      const Ref mode = call.positional(0);
      const Ref object = call.receiver();
      const bool is_within = object && is_made_around(program, wrap, call);
      const bool is_it = is_within || is_its_name(program, wrap, object);
      if (!is_it && !(name == "train" && object && program.wrap_of(object) == &wrap)) continue;
      if (name == "train" && !(mode && program.is_literal_false(mode))) return false;
      evaluates = true;
    }
  return evaluates;
}

// Nothing that the function of the wrapper does, or calls, is a backward pass.
bool is_beside_training(const Program& program, const Wrap& wrap) {
  const FunctionRef function = program.enclosing_function(wrap.call.ref());
  if (!function) return false;
  const Ref body{function.module, function.function->body};
  return !program.subtree_calls(body,
                                [](const CallRef& call) { return call.call->name == "backward"; });
}

// Each pass that is seen runs without gradients.
bool runs_without_gradients(const Program& program, const Wrap& wrap) {
  bool any = false;
  for (const ForwardCall& forward : program.forward_calls()) {
    if (forward.wrap != &wrap) continue;
    if (!program.under_no_grad(forward.call.ref())) return false;
    any = true;
  }
  return any;
}

// net in net = net.module
bool is_target(const SyntaxTree& tree, NodeId name) {
  const NodeId setting = tree[name].parent;
  return tree[setting].kind == Kind::assignment && tree.child(setting, Field::left) == name &&
         tree.text(tree.child(setting, Field::right)) == std::string(tree.text(name)) + ".module";
}

// net = DataParallel(net); net.load_state_dict(weights); self.body = net.module.body
bool only_hands_on_weights(const Program& program, const Wrap& wrap) {
  const std::string_view name = program.assigned_name(wrap.call.ref());
  const FunctionRef function = program.enclosing_function(wrap.call.ref());
  if (name.empty() || !function) return false;
  const auto& tree = wrap.call.module->tree();
  bool loads = false;
  for (NodeId node = wrap.call.call->node; node < tree[function.function->body].last; ++node) {
    if (tree[node].kind != Kind::identifier || tree.text(node) != name ||
        tree.contains(wrap.call.call->node, node) || is_target(tree, node))
      continue;
    const NodeId use = tree[node].parent;
    if (tree[use].kind != Kind::attribute || tree[use].first_child != node) return false;
    const std::string_view text = tree.text(use);
    const bool is_load = text.ends_with(".load_state_dict");
    loads = loads || is_load;
    if (!is_load && !text.ends_with(".module")) return false;
    // net = net.module: from here on the name means what it holds.
    const NodeId setting = tree[use].parent;
    if (tree[setting].kind == Kind::assignment && tree.child(setting, Field::right) == use &&
        tree.text(tree.child(setting, Field::left)) == name)
      break;
  }
  return loads;
}

// A loss by its name and its class, which is given no model: that of a class out of sight may have
// no parameters, for which DDP raises.
bool is_loss(const Program& program, const Wrap& wrap) {
  const auto is_of_model = [](std::string_view text) {
    return pitfalls::says_any(text, {"model", "net", "with", "train"});
  };
  const auto says_loss = [](std::string_view text) {
    return pitfalls::says_any(text, {"loss", "criterion"});
  };
  const std::string_view text = wrap.module.text();
  const std::string_view name = text.substr(text.rfind('.') + 1);
  if (wrap.module.kind() == Kind::call || !says_loss(name) || is_of_model(name)) return false;
  if (!std::all_of(wrap.classes.begin(), wrap.classes.end(),
                   [&](const ClassRef& cls) { return says_loss(cls.cls->name); }))
    return false;
  const auto& sources = program.module_sources(wrap.module);
  return std::none_of(sources.begin(), sources.end(), [&](const Source& source) {
    const CallRef made = program.as_call(source.ref);
    return made && is_of_model(made.ref().text());
  });
}

}  // namespace

bool wraps_nothing_trained(const Program& program, const Wrap& wrap) {
  if (only_hands_on_weights(program, wrap)) return true;
  if (is_loss(program, wrap)) return !is_given_to_optimizer(program, wrap, false);
  if (is_given_to_optimizer(program, wrap, true)) return false;
  if (!is_beside_training(program, wrap)) return false;
  return is_set_to_evaluation(program, wrap) || runs_without_gradients(program, wrap);
}

bool is_used_as_wrapper(const Program& program, const Wrap& wrap) {
  const std::string_view name = program.assigned_name(wrap.call.ref());
  if (name.empty()) return true;
  const bool is_attribute = name.find('.') != std::string_view::npos;  // of objects of other files
  const std::string_view last = name.substr(name.rfind('.') + 1);
  const auto is_it = [&](Ref object) {
    if (const Wrap* known = program.wrap_of(object))  // of two branches only one is known
      return known == &wrap || (program.assigned_name(known->call.ref()) == name &&
                                pitfalls::facts::exclusive(known->call.ref(), wrap.call.ref()));
    const std::string_view text = object.text();
    if (object.module != wrap.call.module && !is_attribute) return false;
    return text == name || text.ends_with("." + std::string(last));
  };
  for (const Module* module : program.modules())
    for (NodeId node = 0; node < module->tree().size(); ++node) {
      const Ref part{module, node};
      if (part.kind() != Kind::attribute) continue;
      const std::string_view text = part.text();
      if ((text.ends_with(".module") || text.ends_with("state_dict")) &&
          is_it(part.child(Field::object)))
        return true;
    }
  return false;
}

}  // namespace bench::diagnose
