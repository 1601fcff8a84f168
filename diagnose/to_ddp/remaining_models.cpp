// Parameters that DDP waits for in vain, and models that it does not know.
#include "diagnose/to_ddp/remaining_topics.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/wrappers/frozen.hpp"

#include <algorithm>

namespace bench::diagnose {
namespace {

using pitfalls::facts::contains;

bool searches(const Wrap& wrap) {
  return wrap.call.keyword("find_unused_parameters") || wrap.call.keyword("static_graph") ||
         wrap.call.has_splat();
}

// Layers that hold no parameters may well be left out.
bool may_have_parameters(const Program& program, Ref layer) {
  const CallRef made = program.made_by(layer);
  if (!made) return true;
  static constexpr std::string_view kEmpty[] = {"Drop",    "ReLU",   "GELU",     "Sigmoid",
                                                "Softmax", "Pool",   "Identity", "Upsample",
                                                "Tanh",    "Flatten"};
  return std::none_of(std::begin(kEmpty), std::end(kEmpty),
                      [&](std::string_view word) { return contains(made.call->name, word); });
}

// self.layer(x), after self.layer = ... in the same class.
bool runs_own_layer(const Program& program, const CallRef& call, const ClassRef& cls) {
  const Ref function{call.module, call.call->function};
  if (function.kind() != Kind::attribute || function.child(Field::object).text() != "self")
    return false;
  const auto& defs = cls.module->defs_of(call.call->name, true);
  return !defs.empty() && !program.method(cls, call.call->name) &&
         may_have_parameters(program, function);
}

// The last words of the names in a condition: use_norm for self.use_norm.
bool shares_word(Ref condition, std::string_view text) {
  const auto& tree = condition.module->tree();
  for (NodeId node = condition.node; node < tree[condition.node].last; ++node)
    if (tree[node].kind == Kind::identifier && tree.text(node) != "self" &&
        tree.text(node).size() > 1 && contains(text, tree.text(node)))
      return true;
  return false;
}

// if self.down is not None: x = self.down(x), or if self.use_norm: x = self.norm(x) where the layer
// is made under the same option: the model has no layer that it does not run.
bool is_made_as_run(const Program& program, const CallRef& call, const ClassRef& cls,
                    Ref condition) {
  if (shares_word(condition, call.module->text(call.call->function))) return true;
  const Module& module = *cls.module;
  for (const std::uint32_t index : module.defs_of(call.call->name, true)) {
    const Def& def = module.defs()[index];
    if (def.value == kNoNode) continue;
    if (module[def.value].kind == Kind::conditional &&
        shares_word(condition, module.text(def.value)))
      return true;
    for (const Guard& guard : program.guards({&module, def.target}))
      if (shares_word(condition, guard.condition.text())) return true;
  }
  return false;
}

// What decides whether the call runs, within the function: if statements and `a if b else c`.
std::vector<Ref> conditions_of(const Program& program, const CallRef& call, NodeId function) {
  std::vector<Ref> out;
  for (const Guard& guard : program.guards(call.ref())) out.push_back(guard.condition);
  const auto& tree = call.module->tree();
  const NodeId choice = tree.ancestor(call.call->node, Kind::conditional);
  if (choice != kNoNode && tree.contains(function, choice)) out.push_back({call.module, choice});
  return out;
}

// A layer of a forward pass that runs under a condition; empty where all of them always run.
Ref layer_under_condition(const Program& program, const ClassRef& cls) {
  for (const FunctionRef& method : pitfalls::facts::forward_methods(program, cls))
    for (const CallRef& call : pitfalls::facts::calls_in({method.module, method.function->body})) {
      if (!runs_own_layer(program, call, cls)) continue;
      const auto conditions = conditions_of(program, call, method.function->node);
      if (std::any_of(conditions.begin(), conditions.end(), [&](Ref condition) {
            return !is_made_as_run(program, call, cls, condition);
          }))
        return call.ref();
    }
  return {};
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
        (name.starts_with("transformers.") && !contains(name, "Model")))
      continue;
    for (const std::string_view path : kModels)
      if (name.starts_with(path)) return {cls.module, node};
  }
  return {};
}

// A module of PyTorch, or a model of torchvision that uses all it has.
bool is_of_library(const Program& program, Ref module) {
  const auto& sources = program.module_sources(module);
  return !sources.empty() && std::all_of(sources.begin(), sources.end(), [&](const Source& source) {
    const CallRef made = program.as_call(source.ref);
    if (!made) return false;
    static constexpr std::string_view kWhole[] = {
        "resnet", "vgg", "densenet", "efficientnet", "mobilenet", "resnext", "alexnet"};
    if (contains(made.call->path, "torchvision"))
      return std::any_of(std::begin(kWhole), std::end(kWhole),
                         [&](std::string_view name) { return made.call->name.starts_with(name); });
    return made.call->path.starts_with("torch.nn.") &&
           (made.call->name != "Sequential" || !made.has_splat());
  });
}

// Why gradients may be missing; empty where the model shows that none are.
std::string doubt_of(const Program& program, const Wrap& wrap) {
  if (wrap.classes.empty())
    return is_of_library(program, wrap.module) ? "" : "the model's code is not in sight";
  for (const ClassRef& cls : pitfalls::facts::wrapped_classes(program, wrap)) {
    const std::string name(cls.cls->name);
    if (const Ref layer = layer_under_condition(program, cls))
      return name + " runs layers under a condition (" + place_of(layer) + ")";
    if (const Ref model = model_of_others(cls))
      return name + " holds a library's model (" + place_of(model) + ")";
  }
  return "";
}

// The same object by another name: one of its sources is one of the other's.
bool shares_source(const Program& program, Ref a, Ref b) {
  const auto& first = program.module_sources(a);
  const auto& second = program.module_sources(b);
  return std::any_of(first.begin(), first.end(), [&](const Source& each) {
    return std::any_of(second.begin(), second.end(),
                       [&](const Source& other) { return each.ref == other.ref; });
  });
}

// The object is what a wrapper holds, a layer within it, or one that its class was given.
bool is_in_wrapper(const Program& program, Ref object) {
  for (const Wrap& wrap : program.wraps()) {
    if (wrap.kind != Wrapper::ddp) continue;
    if (!wrap.module || wrap.module.text() == object.text() ||
        shares_source(program, object, wrap.module))
      return true;
    const auto classes = pitfalls::facts::wrapped_classes(program, wrap);
    for (const Source& source : program.module_sources(object)) {
      const ClassRef home = program.enclosing_class(source.ref);
      if (home && std::find(classes.begin(), classes.end(), home) != classes.end()) return true;
    }
    for (const Source& source : program.module_sources(wrap.module))
      for (const CallRef& inner : pitfalls::facts::calls_in(source.ref))
        for (const Argument& given : inner.module->arguments(inner.call->node))
          if (inner.module->text(given.value) == object.text() ||
              shares_source(program, object, {inner.module, given.value}))
            return true;
  }
  return false;
}

// A module that is made in sight, and nothing else that the name may be.
bool is_module(const Program& program, Ref object) {
  const auto& sources = program.module_sources(object);
  return !sources.empty() && std::all_of(sources.begin(), sources.end(), [&](const Source& source) {
    const CallRef made = program.as_call(source.ref);
    return source.how == Source::How::value && made &&
           (program.derives_from(program.class_of_call(made), Api::module_class) ||
            (made.call->path.starts_with("torch.nn.") && made.call->api != Api::ddp &&
             made.call->api != Api::data_parallel));
  });
}

// discriminator of Adam(discriminator.parameters()), which no wrapper holds.
std::vector<Ref> bare_models_of(const Program& program, const CallRef& optimizer) {
  std::vector<Ref> out;
  const Ref given = optimizer.argument(0, "params");
  if (!given) return out;
  auto calls = pitfalls::facts::calls_in(given);
  for (const Source& source : program.sources(given))
    for (const CallRef& each : pitfalls::facts::calls_in(source.ref)) calls.push_back(each);
  for (const CallRef& call : calls) {
    const Ref object = call.receiver();
    if ((call.call->name != "parameters" && call.call->name != "named_parameters") || !object ||
        program.wrap_of(object) != nullptr || contains(object.text(), ".module") ||
        !is_module(program, object) || is_in_wrapper(program, object) ||
        pitfalls::is_frozen(program, object))
      continue;
    out.push_back(object);
  }
  return out;
}

// What is wrapped has buffers that a forward pass changes, or may have: its code is not in sight.
bool may_have_batch_norm(const Program& program, const Wrap& wrap) {
  if (pitfalls::facts::has_batch_norm(program, wrap)) return true;
  const auto classes = pitfalls::facts::wrapped_classes(program, wrap);
  return std::any_of(classes.begin(), classes.end(), [](const ClassRef& cls) {
    const Ref model = model_of_others(cls);
    return (model && contains(model.module->qualified(model.node), "torchvision.models.")) ||
           contains(cls.module->text(cls.cls->node), "BatchNorm");
  });
}

// In a loop of its own below the one over batches: for image in images: net(image), perhaps in a
// function that the batch is handed to. A pass that has its backward in the same loop is none.
bool is_repeated(const Left& left, const ForwardCall& forward, const TrainingLoop& loop,
                 const std::vector<FunctionRef>& reached) {
  const Program& program = left.program;
  const Ref call = forward.call.ref();
  const Ref inner = program.innermost_loop(call);
  if (!inner || inner == loop.batches || inner == loop.epochs ||
      forward.wrap->kind != Wrapper::ddp || program.under_no_grad(call) ||
      program.is_evaluation(call) ||
      program.is_literal_false(forward.wrap->call.keyword("broadcast_buffers")))
    return false;
  const auto& tree = inner.module->tree();
  const bool is_below =
      (inner.module == loop.batches.module && tree.contains(loop.batches.node, inner.node)) ||
      std::find(reached.begin(), reached.end(), program.enclosing_function(inner)) != reached.end();
  return is_below &&
         std::none_of(loop.backwards.begin(), loop.backwards.end(), [&](const CallRef& backward) {
           return inner.module == backward.module && tree.contains(inner.node, backward.call->node);
         });
}

}  // namespace

void tell_unused_parameters(Left& left) {
  if (!left.trains() || std::any_of(left.found.begin(), left.found.end(),
                                    [](const Finding& each) { return each.rule == "DDP001"; }))
    return;
  std::vector<Ref> places;
  std::string doubts;
  for (const Wrap& wrap : left.program.wraps()) {
    if (wrap.kind != Wrapper::ddp || searches(wrap)) continue;
    const std::string doubt = doubt_of(left.program, wrap);
    if (doubt.empty()) continue;
    places.push_back(wrap.call.ref());
    if (!contains(doubts, doubt)) doubts += (doubts.empty() ? "" : "; ") + doubt;
  }
  left.tell(
      Harm::may_stop, places,
      "DDP waits for a gradient of every parameter, and not all may get one: " + doubts +
          ". If step 2 raises \"Expected to have finished reduction in the prior iteration\", "
          "pass find_unused_parameters=True.");
}

void tell_repeated_forwards(Left& left) {
  const Program& program = left.program;
  if (program.uses(Api::convert_sync_batch_norm)) return;
  std::vector<Ref> places;
  for (const TrainingLoop& loop : program.training_loops()) {
    if (!left.runs_on_every_rank(loop.batches)) continue;
    const auto reached = program.reached(loop.batches);
    for (const ForwardCall& forward : program.forward_calls())
      if (is_repeated(left, forward, loop, reached) &&
          !left.is_found(forward.call.ref(), "DDP011") &&
          may_have_batch_norm(program, *forward.wrap))
        places.push_back(forward.call.ref());
  }
  left.tell(
      Harm::may_stop, places,
      "this model runs several times before one backward pass, and DDP copies rank 0's buffers "
      "into place before each run: with BatchNorm in it, backward fails with \"modified by an "
      "inplace operation\". Pass broadcast_buffers=False, or run all inputs in one pass.");
}

void tell_bare_models(Left& left) {
  const auto& wraps = left.program.wraps();
  if (std::none_of(wraps.begin(), wraps.end(),
                   [](const Wrap& wrap) { return wrap.kind == Wrapper::ddp; }))
    return;
  for (const CallRef& optimizer : left.program.calls(Api::optimizer)) {
    if (!left.runs_on_every_rank(optimizer.ref())) continue;
    for (const Ref& model : bare_models_of(left.program, optimizer))
      left.tell(
          Harm::stops, {model},
          "`" + std::string(model.text()) +
              "` is trained without a wrapper: every rank steps it with the gradients of its "
              "own data, and the copies drift apart. Wrap it in DistributedDataParallel, too.");
  }
}

}  // namespace bench::diagnose
