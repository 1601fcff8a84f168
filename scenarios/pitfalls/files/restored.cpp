#include "scenarios/pitfalls/files/restored.hpp"

#include "scenarios/pitfalls/metrics/metric_sums.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"

#include <algorithm>
#include <string>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Kind;
using diagnose::Source;

namespace {

// Some wrapper is made of the very object.
bool is_wrapped_later(const Program& program, Ref object) {
  const auto& own = program.module_sources(object);
  const auto& wraps = program.wraps();
  return std::any_of(wraps.begin(), wraps.end(), [&](const diagnose::Wrap& wrap) {
    const auto wrapped = wrap.module ? program.module_sources(wrap.module) : std::vector<Source>{};
    return std::any_of(wrapped.begin(), wrapped.end(), [&](const Source& source) {
      return program.as_call(source.ref) &&
             std::any_of(own.begin(), own.end(),
                         [&](const Source& other) { return other.ref == source.ref; });
    });
  });
}

// The name of what was loaded: loaded = torch.load(path)["model"] too.
std::string_view name_of(const Program& program, const CallRef& load) {
  const std::string_view name = program.assigned_name(load.ref());
  const diagnose::NodeId named = load.module->tree().ancestor(load.call->node, Kind::assignment);
  if (!name.empty() || named == diagnose::kNoNode) return name;
  return load.ref().with(load.module->tree().child(named, diagnose::Field::left)).text();
}

// Assignments of the body, what own[key] = value stores, and what own.update(loaded) adds.
std::vector<Assigned> fillings_in(Ref body) {
  std::vector<Assigned> out = assignments_in(body);
  const diagnose::Module& module = *body.module;
  for (const diagnose::Def& def : module.defs()) {
    const Ref target = body.with(def.target);
    if (target.kind() == Kind::subscript && def.value != diagnose::kNoNode &&
        module.tree().contains(body.node, def.target))
      out.push_back({std::string(target.child(diagnose::Field::value).text()), def.target,
                     body.with(def.value)});
  }
  for (const CallRef& call : facts::calls_in(body))
    if (call.call->name == "update" && call.receiver() && call.positional(0))
      out.push_back({std::string(call.receiver().text()), call.call->node, call.positional(0)});
  return out;
}

// for key, value in loaded.items(): own[key[7:]] = value, and own goes into the model.
bool is_made_of(const Program& program, Ref state, const CallRef& load, std::string_view name) {
  const Ref body = body_around(program, state);
  if (name.empty() || body != body_around(program, load.ref())) return false;
  const VariableNames made_of = behind(variables_in(state), fillings_in(body));
  // Parts of it too: loaded["model"].items().
  const std::string part = std::string(name) + "[";
  return std::any_of(made_of.begin(), made_of.end(), [&](const std::string& each) {
    return each == name || each.starts_with(part);
  });
}

// state = loaded["state"], and state["model"] is restored.
bool is_part_of(const Program& program, Ref state, const CallRef& load, std::string_view name) {
  Ref root = state;
  while (root.kind() == Kind::subscript) root = root.child(diagnose::Field::value);
  if (name.empty() || root.kind() != Kind::identifier || root.module != load.module) return false;
  const auto& defs = root.module->defs_of(root.text(), false);
  return std::any_of(defs.begin(), defs.end(), [&](std::uint32_t index) {
    const diagnose::Def& def = root.module->defs()[index];
    return def.kind == diagnose::DefKind::assign && def.value != diagnose::kNoNode &&
           program.enclosing_function(root.with(def.target)) ==
               program.enclosing_function(load.ref()) &&
           root.module->text(def.value).starts_with(std::string(name) + "[");
  });
}

// partial_load_state_dict(model, state), load_weights(net, state), by whatever it fills the model.
bool is_loader_of_states(const CallRef& call) {
  return !call.receiver() && call.call->api == Api::none && call.positional(1) &&
         says_any(call.call->name, {"load"}) &&
         says_any(call.call->name, {"state", "weight", "param", "pretrain", "ckpt", "checkpoint"});
}

}  // namespace

bool is_restored(const Program& program, const CallRef& load) {
  const auto holds = [&](Ref value) {
    if (value.module == load.module && value.module->tree().contains(value.node, load.call->node))
      return true;
    const auto& sources = program.sources(value);
    return std::any_of(sources.begin(), sources.end(),
                       [&](const Source& source) { return source.ref == load.ref(); });
  };
  const std::string_view name = name_of(program, load);
  // own[key] = loaded["module." + key] fills the dictionary that is restored.
  const auto is_filled = [&](Ref state) {
    const auto& items = state.module->item_defs_of(state.text());
    return !name.empty() && std::any_of(items.begin(), items.end(), [&](std::uint32_t index) {
      const diagnose::NodeId value = state.module->defs()[index].value;
      return value != diagnose::kNoNode && state.module->text(value).starts_with(name);
    });
  };
  // model.load(checkpoint) of the model that is wrapped, whatever its class makes of it.
  for (const diagnose::Call& made : load.module->calls()) {
    const CallRef call{load.module, &made};
    if (made.name.starts_with("load") && call.receiver() && call.positional(0) &&
        is_wrapped_later(program, call.receiver()) && holds(call.positional(0)))
      return true;
    if (is_loader_of_states(call) && (holds(call.positional(0)) || holds(call.positional(1))))
      return true;
  }
  // The state of adapters stands behind the model.
  for (const CallRef& call : program.calls_named("set_peft_model_state_dict"))
    if (call.positional(1) && holds(call.positional(1))) return true;
  for (const std::string_view restore : {"load_state_dict", "load_params", "load_model"})
    for (const CallRef& call : program.calls_named(restore)) {
      const Ref state = call.positional(0);
      if (!state) continue;
      if (holds(state) || is_filled(state) || is_part_of(program, state, load, name)) return true;
      if (!name.empty() && state.module == load.module && facts::contains(state.text(), name))
        return true;
    }
  return false;
}

bool is_filled_in(const Program& program, const CallRef& load) {
  const std::string_view name = name_of(program, load);
  const auto restores = program.calls_named("load_state_dict");
  return std::any_of(restores.begin(), restores.end(), [&](const CallRef& restore) {
    const Ref state = restore.positional(0);
    return state && is_made_of(program, state, load, name);
  });
}

bool is_whole_module(const Program& program, const CallRef& load) {
  const auto is_load = [&](const Source& source) {
    return source.how == Source::How::value && source.ref == load.ref();
  };
  for (const diagnose::Wrap& wrap : program.wraps()) {
    const auto wrapped = wrap.module ? program.module_sources(wrap.module) : std::vector<Source>{};
    if (std::any_of(wrapped.begin(), wrapped.end(), is_load)) return true;
  }
  for (const std::string_view method :
       {"eval", "train", "parameters", "named_parameters", "to", "zero_grad"})
    for (const CallRef& call : program.calls_named(method)) {
      if (!call.receiver()) continue;
      // A tensor is moved as well.
      if (method == "to" && !says_any(call.receiver().text(), {"model", "net"})) continue;
      const auto& sources = program.sources(call.receiver());
      if (std::any_of(sources.begin(), sources.end(), is_load)) return true;
    }
  return false;
}

bool pickles_modules(const Program& program) {
  const auto saves = program.calls(Api::torch_save);
  return std::any_of(saves.begin(), saves.end(), [&](const CallRef& save) {
    const Ref saved = save.positional(0);
    return saved && saved.kind() != Kind::call &&
           (saved.text().ends_with(".module") || program.wrap_of(saved) != nullptr ||
            program.derives_from(program.class_of(saved), Api::module_class));
  });
}

bool is_of_other_files(const Program& program, Ref state) {
  if (state.kind() != Kind::subscript) return false;
  const CallRef file = program.made_by(state.child(diagnose::Field::value));
  const auto key = state.module->tree().string_value(state.child(diagnose::Field::subscript).node);
  if (!file || file.call->api != Api::torch_load || !key) return false;
  for (const std::string& quoted : {"'" + *key + "'", "\"" + *key + "\""})
    for (const char* end : {":", " :", "] =", "]="})
      if (program.mentions(quoted + end)) return false;
  return !program.mentions(*key + "=");
}

namespace {

// torch.zeros(8).cuda(), Variable(centers, requires_grad=True): a tensor, or a name of one.
bool makes_tensor_on_gpu(const Program& program, const diagnose::Module& module,
                         diagnose::NodeId value) {
  const CallRef made = program.as_call({&module, value});
  if (!made) return false;
  const std::string_view text = module.text(value);
  const bool is_tensor = facts::contains(text, "torch.") || facts::contains(text, "Variable(") ||
                         facts::contains(text, "Parameter(");
  return is_tensor && holds_any(text, {".cuda(", ".to(", "device="}) &&
         !program.class_of_call(made) && !program.callee(made);
}

// ema.load_state_dict(states[4]) of a class of the program that is no module, and keeps what it is
// given as it is: self.shadow = state.
bool is_kept_as_given(const Program& program, const CallRef& restore) {
  const diagnose::FunctionRef method = program.callee(restore);
  const diagnose::ClassRef cls =
      method ? program.enclosing_class({method.module, method.function->body})
             : diagnose::ClassRef{};
  if (!cls || program.derives_from(cls, Api::module_class)) return false;
  const diagnose::Module& module = *method.module;
  const auto& parameters = method.function->parameters;
  const auto& defs = module.defs();
  return std::any_of(defs.begin(), defs.end(), [&](const diagnose::Def& def) {
    Ref value{&module, def.value};
    if (def.value == diagnose::kNoNode || !module.text(def.target).starts_with("self.") ||
        !module.tree().contains(method.function->body, def.target))
      return false;
    if (value.kind() == Kind::subscript) value = value.child(diagnose::Field::value);
    return std::any_of(parameters.begin(), parameters.end(), [&](const diagnose::Parameter& each) {
      return each.name != "self" && each.name == value.text();
    });
  });
}

// The loaded itself, or a part of it: states[4], checkpoint["ema"].
bool is_of_loaded(Ref given, std::string_view name) {
  while (given && given.kind() == Kind::subscript) given = given.child(diagnose::Field::value);
  return given && given.text() == name;
}

// self.ema_weights = checkpoint["ema"]: a copy of the weights, which is averaged with them.
bool is_average(std::string_view target) {
  const auto words = words_of_name(target);
  return std::any_of(words.begin(), words.end(),
                     [](const std::string& word) { return word == "ema" || word == "shadow"; });
}

}  // namespace

bool is_used_as_loaded(const Program& program, const CallRef& load) {
  const std::string_view name = program.assigned_name(load.ref());
  if (name.empty()) return false;
  const diagnose::Module& module = *load.module;
  const auto here = program.enclosing_function(load.ref());
  const auto& restores = program.calls_named("load_state_dict");
  if (std::any_of(restores.begin(), restores.end(), [&](const CallRef& restore) {
        return restore.module == &module && program.enclosing_function(restore.ref()) == here &&
               is_of_loaded(restore.positional(0), name) && is_kept_as_given(program, restore);
      }))
    return true;
  const auto& defs = module.defs();
  return std::any_of(defs.begin(), defs.end(), [&](const diagnose::Def& taken) {
    const Ref value{&module, taken.value};
    if (taken.value == diagnose::kNoNode || value.kind() != Kind::subscript ||
        value.child(diagnose::Field::value).text() != name ||
        program.enclosing_function(value) != here)
      return false;
    const std::string_view target = module.text(taken.target);
    return is_average(target) ||
           std::any_of(defs.begin(), defs.end(), [&](const diagnose::Def& made) {
             return made.value != diagnose::kNoNode && module.text(made.target) == target &&
                    makes_tensor_on_gpu(program, module, made.value);
           });
  });
}

bool restores_bare_itself(const Program& program, const CallRef& save) {
  const Ref path = save.argument(1, "f");
  if (save.call->api != Api::torch_save || !path) return false;
  const auto loads = program.calls_named("load_state_dict");
  return std::any_of(loads.begin(), loads.end(), [&](const CallRef& load) {
    const CallRef read = program.as_call(load.positional(0));
    if (load.module != save.module || !load.receiver() || !read ||
        read.call->api != Api::torch_load || read.positional(0).text() != path.text() ||
        load.call->node < save.call->node ||
        program.enclosing_function(load.ref()) != program.enclosing_function(save.ref()) ||
        facts::only_without_distribution(program, load.ref()))
      return false;
    const auto& sources = program.sources(load.receiver());
    return !sources.empty() &&
           std::none_of(sources.begin(), sources.end(), [&](const Source& source) {
             return program.wrap_made_by(source.ref) != nullptr || source.how != Source::How::value;
           });
  });
}

}  // namespace bench::pitfalls
