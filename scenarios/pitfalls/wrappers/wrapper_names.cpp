#include "scenarios/pitfalls/wrappers/wrapper_names.hpp"

#include "scenarios/pitfalls/frameworks/trainer_hooks.hpp"
#include "scenarios/pitfalls/program/argument_for.hpp"
#include "scenarios/pitfalls/program/attribute_attempt.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"
#include "scenarios/pitfalls/ranks/own_ranks.hpp"
#include "scenarios/pitfalls/wrappers/wrapped_above.hpp"

#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace bench::pitfalls {

using diagnose::Def;
using diagnose::DefKind;
using diagnose::Field;
using diagnose::FunctionRef;
using diagnose::Kind;
using diagnose::kNoNode;
using diagnose::Module;
using diagnose::NodeId;
using diagnose::Wrapper;

namespace {

bool is_ddp(const Program& program, Ref use, Ref object) {
  return program.wrap_of(object, Wrapper::ddp) != nullptr &&
         (facts::is_surely_wrapped(program, object) || is_wrapped_above(program, use, object));
}

// Some line of the file has model.module.phase, and it is not the other branch of the one that sets
// model.phase.
bool is_used_below(Ref target) {
  const std::string path = std::string(target.child(Field::object).text()) + ".module." +
                           std::string(target.child(Field::attribute).text());
  const auto& tree = target.module->tree();
  bool used = false;
  for (NodeId id = 0; id < tree.size(); ++id) {
    if (tree[id].kind != Kind::attribute || tree.text(id) != path) continue;
    if (facts::exclusive(target, target.with(id))) return false;
    used = true;
  }
  return used;
}

// The attributes that the program reads, by name.
struct NamesRead {
  std::set<std::string, std::less<>> of_self;
  std::set<std::string, std::less<>> of_others;  // of any object but `self` and `args`
};

NamesRead names_read(const Program& program) {
  NamesRead out;
  for (const Module* module : program.modules()) {
    const auto& tree = module->tree();
    for (NodeId id = 0; id < tree.size(); ++id) {
      if (tree[id].kind != Kind::attribute || tree[id].field == Field::left) continue;
      const Ref use{module, id};
      const std::string_view object = use.child(Field::object).text();
      if (object == "args") continue;
      (object == "self" ? out.of_self : out.of_others).emplace(use.child(Field::attribute).text());
    }
  }
  for (const std::string_view asks : {"getattr", "hasattr"})
    for (const CallRef& call : program.calls_named(asks))
      if (const auto name = program.string(call.positional(1))) out.of_others.insert(*name);
  return out;
}

// Libraries ask these of whatever model they are given, the wrapper too.
bool is_asked_by_libraries(std::string_view name) {
  return says_any(name, {"parallel", "distributed", "ddp", "wrapped", "compile", "checkpointing",
                         "forward_param_sync", "is_loaded", "quantiz"});
}

// A class that may ask for the attribute: one out of sight, or one of the program where some does.
bool may_ask_itself(const Program& program, Ref object, std::string_view name,
                    const NamesRead& names) {
  const diagnose::Wrap* wrap = program.wrap_of(object);
  if (wrap == nullptr || names.of_self.contains(name)) return true;
  if (!wrap->classes.empty()) return false;
  const auto& sources = program.module_sources(wrap->module);
  return !std::all_of(sources.begin(), sources.end(), [&](const diagnose::Source& source) {
    const CallRef made = program.as_call(source.ref);
    return made && made.call->path.starts_with("torch.nn.");
  });
}

// True, False, and the word for a mode: "train", "test".
bool is_switch(Ref value) {
  if (value.kind() == Kind::string)
    return says_any(value.text(), {"train", "test", "val", "eval", "infer", "predict", "sampl"});
  return value.kind() == Kind::true_literal || value.kind() == Kind::false_literal;
}

// model.is_train = False, which no line of the program reads from an object but `self`: the model
// inside asks its own.
bool is_switch_of_model(const Program& program, Ref target, const NamesRead& names) {
  const std::string_view name = target.child(Field::attribute).text();
  return !is_asked_by_libraries(name) && !names.of_others.contains(name) &&
         may_ask_itself(program, target.child(Field::object), name, names);
}

}  // namespace

void check_stores_on_wrapper(const Program& program, const IsWrapperName& is_its_own,
                             const HoldsWrapper& holds, Report& report) {
  std::optional<NamesRead> names;
  const auto is_idle_switch = [&](Ref target, Ref object, Ref value) {
    if (!is_switch(value) || !holds(target, object)) return false;
    if (!names) names = names_read(program);
    return is_switch_of_model(program, target, *names);
  };
  for (const Module* module : program.modules())
    for (const Def& def : module->defs()) {
      if (!def.is_attribute || def.kind != DefKind::assign) continue;
      const Ref target{module, def.target};
      const Ref object = target.child(Field::object);
      const std::string_view attribute = target.child(Field::attribute).text();
      const Ref value = target.with(def.value);
      if (is_its_own(attribute) || object.text().ends_with(".module") || object.text() == "self" ||
          !value || facts::contains(value.text(), ".module"))
        continue;
      const bool is_left = is_ddp(program, target, object) && is_used_below(target);
      if (!is_left && !is_idle_switch(target, object, value)) continue;
      report
          .at(target, Confidence::likely,
              "'" + std::string(attribute) +
                  (is_left ? "' is set on the wrapper: the model inside, whose own one is used "
                             "elsewhere, keeps its value"
                           : "' is set on the wrapper: the model inside keeps its own value"))
          .help = "Set " + std::string(object.text()) + ".module." + std::string(attribute) + ".";
    }
}

namespace {

// The if statement that the question decides alone, or together with others that have to hold, and
// that has no other branch.
Ref branch_of(Ref question) {
  const auto& tree = question.module->tree();
  NodeId at = question.node;
  NodeId parent = tree[at].parent;
  while (parent != kNoNode && tree[parent].kind == Kind::boolean) {
    if (facts::contains(tree.text(parent), " or ")) return {};
    at = parent;
    parent = tree[at].parent;
  }
  if (parent == kNoNode || tree[parent].kind != Kind::if_statement || tree[at].kind == Kind::block)
    return {};
  for (NodeId child = tree[parent].first_child; child != kNoNode; child = tree[child].next_sibling)
    if (tree[child].kind == Kind::else_clause || tree[child].kind == Kind::elif_clause) return {};
  return question.with(tree.child(parent, Field::consequence));
}

bool knows_of_wrapper(const Program& program, Ref node) {
  const auto function = program.enclosing_function(node);
  const std::string_view text =
      function ? function.module->text(function.function->node) : node.module->tree().source();
  return facts::contains(text, ".module");
}

}  // namespace

void check_questions_to_wrapper(const Program& program, const IsWrapperName& is_its_own,
                                Report& report) {
  for (const CallRef& question : program.calls_named("hasattr")) {
    const Ref object = question.positional(0);
    const auto name = program.string(question.positional(1));
    if (!name || is_its_own(*name)) continue;
    const Ref branch = branch_of(question.ref());
    if (!branch || !facts::contains(branch.text(), std::string(object.text()) + "." + *name) ||
        program.wrap_of(object, Wrapper::ddp) == nullptr ||
        !facts::is_surely_wrapped(program, object) ||
        facts::only_without_distribution(program, question.ref()) ||
        knows_of_wrapper(program, question.ref()))
      continue;
    Finding& finding = report.at(question.ref(), Confidence::likely,
                                 "the wrapper has no attribute '" + *name +
                                     "', which the wrapped model may have: the answer is always "
                                     "no, and this branch never runs");
    finding.severity = Severity::warning;
    finding.help = "Ask " + std::string(object.text()) + ".module.";
  }
}

namespace {

// on_train_epoch_end(self, trainer, pl_module), and on_save_checkpoint(): inside of fit().
bool is_hook_of_fit(diagnose::FunctionRef method) {
  const std::string_view name = method.function->name;
  return name.starts_with("on_") &&
         says_any(name, {"train_", "validation_", "save_checkpoint", "backward", "zero_grad"});
}

}  // namespace

void check_trainer_models(const Program& program, const IsWrapperName& is_its_own, Report& report) {
  if (!has_lightning_ranks(program)) return;
  const Module& root = program.root();
  const auto& tree = root.tree();
  for (NodeId id = 0; id < tree.size(); ++id) {
    if (tree[id].kind != Kind::attribute) continue;
    const Ref use{&root, id};
    const std::string_view object = use.child(Field::object).text();
    if (object != "trainer.model" && object != "self.trainer.model") continue;
    const std::string_view attribute = use.child(Field::attribute).text();
    const auto method = program.enclosing_function(use);
    if (is_its_own(attribute) || !method || !is_hook_of_fit(method) || is_attempt(use, attribute) ||
        program.under(use, [](Ref condition, bool) {
          return holds_any(condition.text(), {"hasattr(", "isinstance("});
        }))
      continue;
    Finding& finding =
        report.at(use, Confidence::likely,
                  "the trainer's model is the wrapper while it fits: it has no attribute '" +
                      std::string(attribute) + "', AttributeError");
    finding.severity = Severity::warning;
    finding.help = "Use trainer.lightning_module." + std::string(attribute) + ".";
  }
}

namespace {

// The method says what it does about the wrapper, or gives the name another value.
bool looks_after_wrapper(FunctionRef method, std::string_view model) {
  const Module& module = *method.module;
  const std::string_view text = module.text(method.function->node);
  if (holds_any(text, {".module", "unwrap", "isinstance(", "hasattr(", "getattr("})) return true;
  const auto& defs = module.defs_of(model, false);
  return std::any_of(defs.begin(), defs.end(), [&](std::uint32_t index) {
    return module.tree().contains(method.function->body, module.defs()[index].target);
  });
}

// if self.args.world_size <= 1, if not is_wrapped(model): one process alone may get there.
bool asks_for_processes(const Program& program, Ref model) {
  const auto guards = program.guards(model);
  return std::any_of(guards.begin(), guards.end(), [&](const diagnose::Guard& guard) {
    return says_any(guard.condition.text(), {"world_size", "num_processes", "n_gpu", "parallel",
                                             "distributed", "ddp", "local_rank"}) ||
           facts::contains(guard.condition.text(), "(" + std::string(model.text()) + ")");
  });
}

void check_hook(const Program& program, FunctionRef method, const IsWrapperName& is_its_own,
                Report& report) {
  const Module& module = *method.module;
  const auto& tree = module.tree();
  std::vector<std::string_view> told;
  const NodeId body = method.function->body;
  for (NodeId id = body; id < tree[body].last; ++id) {
    if (tree[id].kind != Kind::attribute) continue;
    const Ref use{&module, id};
    const Ref model = use.child(Field::object);
    const std::string_view attribute = use.child(Field::attribute).text();
    if (model.kind() != Kind::identifier || is_its_own(attribute) || is_attempt(use, attribute) ||
        std::find(told.begin(), told.end(), attribute) != told.end() ||
        !facts::is_model_of_hook(program, model) || looks_after_wrapper(method, model.text()) ||
        asks_for_processes(program, model))
      continue;
    told.push_back(attribute);
    Finding& finding =
        report.at(use, Confidence::likely,
                  "the Trainer hands over the wrapped model: on several GPUs the wrapper has no "
                  "attribute '" +
                      std::string(attribute) + "', AttributeError");
    finding.severity = Severity::warning;
    finding.help = "Read it from self.model, and let " + std::string(model.text()) +
                   "(...) run what has to be trained.";
  }
}

}  // namespace

void check_models_of_hooks(const Program& program, const IsWrapperName& is_its_own,
                           Report& report) {
  if (!has_trainer_ranks(program) || facts::may_have_another_engine(program)) return;
  for (const FunctionRef& method : program.functions())
    if (method.function->name == "compute_loss" || method.function->name == "training_step")
      check_hook(program, method, is_its_own, report);
}

namespace {

// Of a function that has mine = dict(a.named_parameters()) and theirs = dict(b.named_parameters()):
// the names of the parameters a and b, where mine is asked for the names of theirs.
struct Lookup {
  std::string_view among;
  std::string_view names;
};

// The parameter of which the variable holds the named parameters.
std::string_view parameter_behind(diagnose::FunctionRef function, const Def& def) {
  if (def.value == kNoNode) return {};
  const std::string_view value = function.module->text(def.value);
  for (const auto& parameter : function.function->parameters)
    if (facts::contains(value, "dict(" + std::string(parameter.name) + ".named_parameters())") ||
        facts::contains(value, "Dict(" + std::string(parameter.name) + ".named_parameters())"))
      return parameter.name;
  return {};
}

Lookup lookup_in(diagnose::FunctionRef function) {
  const Module& module = *function.module;
  const std::string_view text = module.text(function.function->node);
  if (!facts::contains(text, ".named_parameters())") || facts::contains(text, "module.") ||
      facts::contains(text, ".replace("))
    return {};
  Lookup out;
  for (const Def& def : module.defs()) {
    if (def.kind != DefKind::assign || !module.tree().contains(function.function->body, def.target))
      continue;
    const std::string_view parameter = parameter_behind(function, def);
    if (parameter.empty()) continue;
    if (facts::contains(text, " in " + std::string(def.name) + ".items()")) out.names = parameter;
    if (facts::contains(text, std::string(def.name) + "[name]") ||
        facts::contains(text, std::string(def.name) + "[k]") ||
        facts::contains(text, std::string(def.name) + "[key]"))
      out.among = parameter;
  }
  return out;
}

}  // namespace

void check_names_of_parameters(const Program& program, Report& report) {
  for (const diagnose::FunctionRef& function : program.functions()) {
    const Lookup lookup = lookup_in(function);
    if (lookup.among.empty() || lookup.names.empty() || lookup.among == lookup.names) continue;
    for (const CallRef& site : program.call_sites(function)) {
      const Ref wrapper = facts::argument_for(site, function, lookup.names);
      const Ref bare = facts::argument_for(site, function, lookup.among);
      if (!wrapper || !bare || wrapper.text().ends_with(".module") ||
          program.wrap_of(bare) != nullptr || !is_ddp(program, site.ref(), wrapper))
        continue;
      report
          .at(site.ref(), Confidence::likely,
              "the wrapper's parameters have 'module.' before their names, and those of the other "
              "model have not: KeyError")
          .help = "Pass " + std::string(wrapper.text()) + ".module.";
    }
  }
}

}  // namespace bench::pitfalls
