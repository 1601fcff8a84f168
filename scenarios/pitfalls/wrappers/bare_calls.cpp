#include "scenarios/pitfalls/wrappers/bare_calls.hpp"

#include "scenarios/pitfalls/program/argument_for.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"
#include "scenarios/pitfalls/wrappers/frozen.hpp"

#include <algorithm>
#include <vector>

namespace bench::pitfalls {

using diagnose::Field;
using diagnose::Kind;
using diagnose::Source;
using diagnose::Wrap;

namespace {

bool is_made_once(const Program& program, Ref made, const Wrap& wrap) {
  const auto function = program.enclosing_function(made);
  return !function || function == program.enclosing_function(wrap.call.ref()) ||
         program.call_sites(function).size() < 2;
}

// The value is one of those that the wrapper was given, and never anything else.
bool is_wrapped_value(const Program& program, Ref value, const Wrap& wrap) {
  if (!diagnose::stands_for_object(value)) return false;
  const auto inner = program.module_sources(wrap.module);
  const auto given = program.module_sources(value);
  return !given.empty() && std::all_of(given.begin(), given.end(), [&](const Source& source) {
    return source.how == Source::How::value && program.as_call(source.ref) &&
           is_made_once(program, source.ref, wrap) &&
           std::any_of(inner.begin(), inner.end(),
                       [&](const Source& other) { return other.ref == source.ref; });
  });
}

// Both(vae, unet) keeps its arguments: __init__ gives them to attributes, or torch.nn does.
bool keeps_argument(const Program& program, const CallRef& made, Ref argument) {
  const std::string_view path = made.call->path;
  if (path.starts_with("torch.nn.Sequential") || path.starts_with("torch.nn.Module")) return true;
  const auto init = program.method(program.class_of_call(made), "__init__");
  if (!init) return false;
  const auto& parameters = init.function->parameters;
  for (std::size_t i = 1; i < parameters.size(); ++i) {
    if (made.argument(i - 1, parameters[i].name) != argument) continue;
    const auto& defs = init.module->defs();
    return std::any_of(defs.begin(), defs.end(), [&](const diagnose::Def& def) {
      return def.is_attribute && def.value != diagnose::kNoNode &&
             init.module->tree().contains(init.function->body, def.target) &&
             init.module->text(def.value) == parameters[i].name;
    });
  }
  return false;
}

// What the wrapped object is made of: vae and unet of DDP(Both(vae, unet)).
std::vector<Ref> parts_of(const Program& program, const Wrap& wrap) {
  std::vector<Ref> out;
  for (const Source& source : program.module_sources(wrap.module)) {
    const CallRef made = source.how == Source::How::value ? program.as_call(source.ref) : CallRef{};
    if (!made) continue;
    const auto& tree = made.module->tree();
    const diagnose::NodeId list = tree.child(made.call->node, Field::arguments);
    if (list == diagnose::kNoNode) continue;
    for (diagnose::NodeId at = tree[list].first_child; at != diagnose::kNoNode;
         at = tree[at].next_sibling) {
      Ref value = made.ref().with(at);
      if (value.kind() == Kind::keyword_argument) value = value.child(Field::value);
      const std::size_t before = out.size();
      if (value.kind() == Kind::list || value.kind() == Kind::tuple) {
        for (diagnose::NodeId item = tree[value.node].first_child; item != diagnose::kNoNode;
             item = tree[item].next_sibling)
          out.push_back(value.with(item));
      } else {
        out.push_back(value);
      }
      if (!keeps_argument(program, made, value)) out.resize(before);
    }
  }
  return out;
}

bool is_part(const Program& program, Ref object, const Wrap& wrap) {
  // self.encoder = self.net.encoder
  for (const Source& source : program.sources(object))
    if (source.ref.kind() == Kind::attribute && source.ref != object &&
        is_wrapped_value(program, source.ref.child(Field::object), wrap))
      return program.sources(object).size() == 1;
  const auto given = program.module_sources(object);
  if (given.size() != 1 || given.front().how != Source::How::value ||
      !program.as_call(given.front().ref) || !is_made_once(program, given.front().ref, wrap))
    return false;
  const auto parts = parts_of(program, wrap);
  return std::any_of(parts.begin(), parts.end(), [&](Ref part) {
    if (!diagnose::stands_for_object(part)) return false;
    const auto made = program.module_sources(part);
    return made.size() == 1 && made.front().ref == given.front().ref;
  });
}

// A method that runs layers: of a class in sight any but those of nn.Module, else by its name.
bool runs_layers(const CallRef& call) {
  static constexpr std::string_view kOfModules[] = {"parameters",     "named_parameters",
                                                    "state_dict",     "load_state_dict",
                                                    "modules",        "children",
                                                    "buffers",        "train",
                                                    "eval",           "to",
                                                    "cuda",           "cpu",
                                                    "zero_grad",      "requires_grad_",
                                                    "apply",          "named_modules",
                                                    "named_children", "named_buffers",
                                                    "half",           "float"};
  const std::string_view name = call.call->name;
  if (std::find(std::begin(kOfModules), std::end(kOfModules), name) != std::end(kOfModules))
    return false;
  return says_any(name, {"forward", "loss", "encod", "decod", "step", "feature", "embed", "predict",
                         "logits", "score", "log_prob", "elbo", "infer", "reconstruct"});
}

// Diffusion(ddp, steps=1000) of a library may run what it is given; print(ddp) does not.
bool may_run(std::string_view name, bool has_forward) {
  if (says_any(name, {"train", "fit", "tune", "run", "step", "epoch", "engine", "learner", "solver",
                      "runner", "loss", "optimiz"}))
    return true;
  return !has_forward &&
         !says_any(name, {"save", "load",     "count", "log",    "copy",   "graph", "ema",
                          "dict", "debug",    "watch", "print",  "summar", "param", "info",
                          "len",  "instance", "attr",  "unwrap", "type",   "str",   "append",
                          "sync", "freeze",   "init",  "id"});
}

// train(ddp, loader) and Engine(ddp) of files that are not there.
bool is_handed_to_training(const Program& program, const Wrap& wrap) {
  const auto& forwards = program.forward_calls();
  const bool has_forward =
      std::any_of(forwards.begin(), forwards.end(),
                  [&](const diagnose::ForwardCall& forward) { return forward.wrap == &wrap; });
  for (const diagnose::Module* module : program.modules())
    for (const diagnose::Call& made : module->calls()) {
      const CallRef call{module, &made};
      if (made.api != diagnose::Api::none || !may_run(made.name, has_forward) ||
          program.callee(call) || program.class_of_call(call))
        continue;
      const auto given = facts::arguments_of(call);
      if (std::any_of(given.begin(), given.end(),
                      [&](Ref each) { return program.wrap_of(each) == &wrap; }))
        return true;
    }
  return false;
}

}  // namespace

bool runs_inside_of(const Program& program, const CallRef& call, const Wrap& wrap) {
  if (!wrap.module || program.wrap_made_by(call.ref()) != nullptr) return false;
  const Ref receiver = call.receiver();
  const Ref function{call.module, call.call->function};
  const bool is_method = receiver && receiver.text() != "self" &&
                         diagnose::stands_for_object(receiver) && runs_layers(call);
  for (const Ref object : {function, is_method ? receiver : Ref{}}) {
    if (!object || !diagnose::stands_for_object(object) ||
        program.is_wrapped(object, diagnose::Wrapper::ddp))
      continue;
    if ((object != function && is_wrapped_value(program, object, wrap)) ||
        is_part(program, object, wrap))
      return !is_frozen(program, object) && !is_handed_to_training(program, wrap);
  }
  return false;
}

}  // namespace bench::pitfalls
