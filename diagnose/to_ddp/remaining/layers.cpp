// Parameters that DDP waits for in vain, and buffers that it copies too often.
#include "diagnose/to_ddp/parameterless.hpp"
#include "diagnose/to_ddp/remaining/idle_layers.hpp"
#include "diagnose/to_ddp/remaining/topics.hpp"
#include "scenarios/pitfalls/program/facts.hpp"

#include <algorithm>
#include <set>

namespace bench::diagnose {
namespace {

using pitfalls::facts::contains;

bool searches(const Wrap& wrap) {
  return wrap.call.keyword("find_unused_parameters") || wrap.call.keyword("static_graph") ||
         wrap.call.has_splat();
}

// self.layer(x), after self.layer = ... in the same class.
bool runs_own_layer(const Program& program, const CallRef& call, const ClassRef& cls) {
  const Ref function{call.module, call.call->function};
  if (function.kind() != Kind::attribute || function.child(Field::object).text() != "self")
    return false;
  const auto& defs = cls.module->defs_of(call.call->name, true);
  return !defs.empty() && !program.method(cls, call.call->name) &&
         may_hold_parameters(program, function);
}

// What a name in one expression means to another: use_norm for self.use_norm, and no object that
// options hang on.
std::set<std::string_view> words_of(Ref expression) {
  std::set<std::string_view> out;
  const auto& tree = expression.module->tree();
  for (NodeId node = expression.node; node < tree[expression.node].last; ++node)
    if (tree[node].kind == Kind::identifier) out.insert(tree.text(node));
  for (const char* common :
       {"self", "args", "cfg", "config", "opt", "params", "len", "nn", "torch"})
    out.erase(common);
  return out;
}

bool share_words(Ref a, Ref b) {
  const auto first = words_of(a);
  const auto second = words_of(b);
  return std::any_of(first.begin(), first.end(),
                     [&](std::string_view word) { return second.contains(word); });
}

// if self.down is not None: x = self.down(x), or if self.use_norm: x = self.norm(x) where the layer
// is made under the same option: the model has no layer that it does not run.
bool is_made_as_run(const Program& program, const CallRef& call, const ClassRef& cls,
                    Ref condition) {
  if (words_of(condition).contains(call.call->name) ||
      contains(condition.text(), "\"" + std::string(call.call->name) + "\"") ||
      contains(condition.text(), "'" + std::string(call.call->name) + "'"))
    return true;
  const Module& module = *cls.module;
  for (const std::uint32_t index : module.defs_of(call.call->name, true)) {
    const Def& def = module.defs()[index];
    if (def.value == kNoNode) continue;
    if (module[def.value].kind == Kind::conditional && share_words(condition, {&module, def.value}))
      return true;
    for (const Guard& guard : program.guards({&module, def.target}))
      if (share_words(condition, guard.condition)) return true;
  }
  return false;
}

// What decides whether the call runs, within the function: if statements and `a if b else c`.
std::vector<Ref> conditions_of(const Program& program, const CallRef& call, NodeId function) {
  std::vector<Ref> out;
  for (const Guard& guard : program.guards(call.ref())) out.push_back(guard.condition);
  const auto& tree = call.module->tree();
  const NodeId choice = tree.ancestor(call.call->node, Kind::conditional);
  const NodeId condition = choice == kNoNode ? kNoNode : tree.child(choice, Field::condition);
  if (condition != kNoNode && tree.contains(function, choice) &&
      !tree.contains(condition, call.call->node))
    out.push_back({call.module, condition});
  return out;
}

// if features: return y, self.head(y) and return self.head(y) below it, or in the other branch.
bool runs_otherwise(const Program& program, const CallRef& call, const FunctionRef& method) {
  const auto here = program.guards(call.ref());
  const auto calls = pitfalls::facts::calls_in({method.module, method.function->body});
  return std::any_of(calls.begin(), calls.end(), [&](const CallRef& other) {
    if (other.ref() == call.ref() || Ref{other.module, other.call->function}.text() !=
                                         Ref{call.module, call.call->function}.text())
      return false;
    const auto there = conditions_of(program, other, method.function->node);
    if (there.empty()) return true;
    const auto guards = program.guards(other.ref());
    return there.size() == 1 && guards.size() == 1 &&
           std::any_of(here.begin(), here.end(), [&](const Guard& guard) {
             return guard.condition == guards.front().condition &&
                    guard.holds != guards.front().holds;
           });
  });
}

// A layer of a forward pass that runs under a condition; empty where all of them always run.
Ref layer_under_condition(const Program& program, const ClassRef& cls) {
  for (const FunctionRef& method : pitfalls::facts::forward_methods(program, cls))
    for (const CallRef& call : pitfalls::facts::calls_in({method.module, method.function->body})) {
      if (!runs_own_layer(program, call, cls) || runs_otherwise(program, call, method)) continue;
      const auto conditions = conditions_of(program, call, method.function->node);
      if (std::any_of(conditions.begin(), conditions.end(), [&](Ref condition) {
            return !is_made_as_run(program, call, cls, condition);
          }))
        return call.ref();
    }
  return {};
}

bool is_list_of_layers(const ClassRef& cls, std::string_view name) {
  for (const std::uint32_t index : cls.module->defs_of(name, true)) {
    const Def& def = cls.module->defs()[index];
    const std::string_view made = def.value == kNoNode ? "" : cls.module->text(def.value);
    if (contains(made.substr(0, made.find('(')), "Module")) return true;
  }
  return false;
}

// depth of forward(self, x, depth), and index after index = int(mode[0]); no loop's own variable.
bool comes_from_argument(const Program& program, Ref name, const FunctionRef& method) {
  if (pitfalls::facts::is_parameter(program, name)) return name.text() != "self";
  const auto& tree = method.module->tree();
  const auto defs = method.module->defs_of(name.text(), false);
  return std::any_of(defs.begin(), defs.end(), [&](std::uint32_t index) {
    const Def& def = method.module->defs()[index];
    if (def.kind != DefKind::assign || def.value == kNoNode ||
        !tree.contains(method.function->body, def.target))
      return false;
    for (NodeId at = def.value; at < tree[def.value].last; ++at)
      if (tree[at].kind == Kind::identifier && tree.text(at) != "self" &&
          pitfalls::facts::is_parameter(program, name.with(at)))
        return true;
    return false;
  });
}

// self.layers[:depth], self.heads[task]: the arguments of the pass say which of them run.
Ref layers_by_argument(const Program& program, const ClassRef& cls) {
  for (const FunctionRef& method : pitfalls::facts::forward_methods(program, cls)) {
    const auto& tree = method.module->tree();
    const NodeId body = method.function->body;
    for (NodeId node = body; node < tree[body].last; ++node) {
      const Ref layer{method.module, node};
      const Ref list = layer.kind() == Kind::subscript ? layer.child(Field::value) : Ref{};
      if (list.kind() != Kind::attribute || list.child(Field::object).text() != "self" ||
          !is_list_of_layers(cls, list.child(Field::attribute).text()))
        continue;
      for (NodeId part = tree[list.node].last; part < tree[node].last; ++part)
        if (tree[part].kind == Kind::identifier &&
            comes_from_argument(program, layer.with(part), method))
          return layer;
    }
  }
  return {};
}

// with torch.set_grad_enabled(not self.freeze): x = self.stem(x), of a layer that keeps its
// requires_grad.
Ref layer_without_gradients(const Program& program, const ClassRef& cls) {
  if (contains(cls.module->tree().text(cls.cls->node), "requires_grad")) return {};
  for (const FunctionRef& method : pitfalls::facts::forward_methods(program, cls))
    for (const CallRef& call : pitfalls::facts::calls_in({method.module, method.function->body}))
      if (runs_own_layer(program, call, cls) && program.enclosing_with(call.ref(), [](Ref item) {
            return contains(item.text(), "set_grad_enabled") || contains(item.text(), "no_grad");
          }))
        return call.ref();
  return {};
}

std::string_view top_level(std::string_view path) { return path.substr(0, path.find('.')); }

// self.encoder.layer1(x): the parts of a model run one by one, and its head perhaps not at all.
bool runs_parts(const ClassRef& cls) {
  const std::string_view text = cls.module->text(cls.cls->node);
  for (const std::string_view part : {".layer1(", ".conv1(", ".features("})
    for (std::size_t at = text.find(part); at != std::string_view::npos;
         at = text.find(part, at + 1)) {
      const std::size_t begin = text.substr(0, at).find_last_not_of(
          "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
      if (begin != std::string_view::npos && text.substr(0, begin + 1).ends_with("self."))
        return true;
    }
  return false;
}

// self.encoder = torchvision.models.resnet18(): a whole model within another, whose head may be
// left unused; empty where the class has none.
Ref model_of_others(const ClassRef& cls) {
  static constexpr std::string_view kModels[] = {
      "torchvision.models.", "timm.create_model",      "timm.models.",
      "clip.load",           "open_clip.create_model", "segmentation_models_pytorch.",
      "transformers.",
  };
  const auto& tree = cls.module->tree();
  for (NodeId node = cls.cls->body; node < tree[cls.cls->body].last; ++node) {
    if (tree[node].kind != Kind::attribute && tree[node].kind != Kind::identifier) continue;
    const std::string name = cls.module->qualified(node);
    if (contains(name, "Block") || contains(name, "Bottleneck") || contains(name, "eights") ||
        (name.starts_with("transformers.") && !contains(name, "Model")) ||
        (name.starts_with("torchvision.") && !runs_parts(cls)))
      continue;
    for (const std::string_view path : kModels)
      if (name.starts_with(path)) return {cls.module, node};
  }
  return {};
}

// resnet18() of torchvision, which uses all it has where it is called as a whole.
bool is_whole_vision_model(const CallRef& made) {
  static constexpr std::string_view kWhole[] = {"resnet",    "vgg",     "densenet", "efficientnet",
                                                "mobilenet", "resnext", "alexnet"};
  return contains(made.call->path, "torchvision") &&
         std::any_of(std::begin(kWhole), std::end(kWhole),
                     [&](std::string_view name) { return made.call->name.starts_with(name); });
}

// self.net(x) and self.net.encode(x) of a part that code out of sight has made; empty where all
// parts of the forward pass are layers of PyTorch or classes of the program.
Ref part_out_of_sight(const Program& program, const ClassRef& cls) {
  for (const FunctionRef& method : pitfalls::facts::forward_methods(program, cls))
    for (const CallRef& call : pitfalls::facts::calls_in({method.module, method.function->body})) {
      const Ref function{call.module, call.call->function};
      Ref part = function;
      if (part.child(Field::object).kind() == Kind::attribute) part = part.child(Field::object);
      if (part.kind() != Kind::attribute || part.child(Field::object).text() != "self") continue;
      for (const Source& source : program.sources(part)) {
        const CallRef made = program.as_call(source.ref);
        if (made && !program.class_of_call(made) && !program.callee(made) &&
            source.ref.module->imports_top_level(top_level(made.call->path)) &&
            top_level(made.call->path) != "torch" && top_level(made.call->path) != "einops" &&
            !(part == function && is_whole_vision_model(made)))
          return source.ref;
      }
    }
  return {};
}

// A module of PyTorch, or a model of torchvision that uses all it has.
bool is_of_library(const Program& program, Ref module) {
  const auto& sources = program.module_sources(module);
  return !sources.empty() && std::all_of(sources.begin(), sources.end(), [&](const Source& source) {
    const CallRef made = program.as_call(source.ref);
    if (!made) return false;
    if (contains(made.call->path, "torchvision")) return is_whole_vision_model(made);
    return made.call->path.starts_with("torch.nn.") &&
           (made.call->name != "Sequential" || !made.has_splat());
  });
}

// A rule says it of a layer of what this wrapper holds.
bool is_said_by_rule(const Left& left, const Wrap& wrap) {
  const auto classes = pitfalls::facts::wrapped_classes(left.program, wrap);
  return std::any_of(left.found.begin(), left.found.end(), [&](const Finding& each) {
    return each.rule == "DDP001" &&
           std::any_of(classes.begin(), classes.end(),
                       [&](const ClassRef& cls) { return cls.module->path() == each.file; });
  });
}

// Why gradients may be missing; empty where the model shows that none are.
std::string doubt_of(const Program& program, const Wrap& wrap) {
  if (wrap.classes.empty())
    return is_of_library(program, wrap.module) ? "" : "it cannot be followed which model this is";
  for (const ClassRef& cls : pitfalls::facts::wrapped_classes(program, wrap)) {
    const std::string name(cls.cls->name);
    if (const Ref layer = layer_under_condition(program, cls))
      return name + " runs layers under a condition (" + place_of(layer) + ")";
    if (const Ref layer = layers_by_argument(program, cls))
      return name + " runs those of its layers that an argument chooses (" + place_of(layer) + ")";
    if (const Ref layer = layer_without_gradients(program, cls))
      return name + " runs layers without gradients (" + place_of(layer) + ")";
    if (const Ref layer = layer_beside_forward(program, wrap, cls))
      return name + " has a layer that its forward pass does not run (" + place_of(layer) + ")";
    if (const Ref module = module_beside_forward(program, wrap, cls))
      return name + " holds a module that its forward pass does not run (" + place_of(module) + ")";
    if (const Ref model = model_of_others(cls))
      return name + " holds a library's model (" + place_of(model) + ")";
    if (const Ref part = part_out_of_sight(program, cls))
      return name + " has a part whose code is not in sight (" + place_of(part) + ")";
  }
  return "";
}

}  // namespace

void tell_unused_parameters(Left& left) {
  if (!left.trains()) return;
  for (const Wrap& wrap : left.program.wraps()) {
    if (wrap.kind != Wrapper::ddp || searches(wrap) || is_said_by_rule(left, wrap)) continue;
    const std::string doubt = doubt_of(left.program, wrap);
    if (doubt.empty()) continue;
    left.tell(
        Harm::may_stop, {wrap.call.ref()},
        "DDP waits for a gradient of every parameter, and not all may get one: " + doubt +
            ". If step 2 raises \"Expected to have finished reduction in the prior iteration\", "
            "pass find_unused_parameters=True.");
  }
}

}  // namespace bench::diagnose
