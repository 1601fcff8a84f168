#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/frameworks/prepared.hpp"
#include "scenarios/pitfalls/judges.hpp"
#include "scenarios/pitfalls/laboratory/trial_prices.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"
#include "scenarios/pitfalls/reach/order.hpp"
#include "scenarios/pitfalls/steps/parameter_switches.hpp"
#include "scenarios/pitfalls/wrappers/changed_wrap.hpp"
#include "scenarios/pitfalls/wrappers/frozen.hpp"
#include "scenarios/pitfalls/wrappers/late_layers.hpp"
#include "scenarios/pitfalls/wrappers/late_weights.hpp"
#include "scenarios/pitfalls/wrappers/wrapped_again.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Def;
using diagnose::DefKind;
using diagnose::Field;
using diagnose::Kind;
using diagnose::kNoNode;
using diagnose::Module;
using diagnose::Source;
using diagnose::Wrap;
using diagnose::Wrapper;

namespace {

// nn.Linear(...), perhaps moved to its device at once.
bool is_layer(const Program& program, Ref value) {
  for (const Source& source : program.module_sources(value)) {
    const diagnose::CallRef call = program.as_call(source.ref);
    if (call && call.call->path.starts_with("torch.nn.")) return true;
    const auto cls = program.class_of_call(call);
    if (cls && program.derives_from(cls, diagnose::Api::module_class)) return true;
  }
  return false;
}

// teacher, and self.teacher where that is the wrapper itself.
bool is_whole_model(const Program& program, Ref model) {
  if (model.kind() == Kind::identifier) return true;
  return model.kind() == Kind::attribute && model.child(Field::object).text() == "self" &&
         program.wrap_of(model) != nullptr;
}

// for p in teacher.parameters(): p.requires_grad = False
// A model that is frozen as a whole takes no part in training.
bool freezes_all(const Program& program, const Def& def, const Module& module) {
  if (def.value == kNoNode || !program.is_literal_false({&module, def.value})) return false;
  const auto& tree = module.tree();
  const Ref parameter{&module, tree.child(def.target, Field::object)};
  for (const Source& source : program.sources(parameter)) {
    const CallRef call = program.as_call(source.ref);
    if (source.how != Source::How::loop_item || !call || call.call->name != "parameters" ||
        !call.receiver() || !is_whole_model(program, call.receiver()))
      continue;
    // Not within a training loop: only its own loop over the parameters is around it.
    const diagnose::Ref own = program.innermost_loop({&module, def.target});
    return own && !program.innermost_loop(own);
  }
  return false;
}

// Nothing gives the gradients back: no line sets requires_grad, or calls a helper for it, but to
// switch it off.
bool gives_back(const Program& program) {
  for (const Module* module : program.modules()) {
    for (const std::uint32_t index : module->defs_of("requires_grad", true)) {
      const Def& def = module->defs()[index];
      if (def.value == kNoNode || !program.is_literal_false({module, def.value})) return true;
    }
    for (const diagnose::Call& made : module->calls())
      if (made.name.find("freeze") != std::string_view::npos ||
          made.name.find("requires_grad") != std::string_view::npos)
        return true;
  }
  return false;
}

// The one wrapper that an optimizer trains, frozen as a whole below the wrap: backward() has
// nothing to go to.
bool freezes_the_trained(const Program& program, const Def& def, const Module& module) {
  const Ref parameter{&module, module.tree().child(def.target, Field::object)};
  if (program.wraps().size() != 1 || gives_back(program)) return false;
  for (const Source& source : program.sources(parameter)) {
    const CallRef call = program.as_call(source.ref);
    if (source.how != Source::How::loop_item || !call || call.call->name != "parameters") continue;
    const Ref model = call.receiver();
    if (!model || program.wrap_of(model) == nullptr) return false;
    const auto optimizers = program.calls(diagnose::Api::optimizer);
    return std::any_of(optimizers.begin(), optimizers.end(), [&](const CallRef& made) {
      const CallRef given = program.made_by(made.argument(0, "params"));
      return given && given.call->name == "parameters" && given.receiver() &&
             program.same_variable(given.receiver(), model);
    });
  }
  return false;
}

// requires_grad_(False) here and requires_grad_(True) on the same name there: phases of training.
bool is_toggled(const Program& program, const diagnose::CallRef& call) {
  const auto all = program.calls_named("requires_grad_");
  return std::any_of(all.begin(), all.end(), [&](const diagnose::CallRef& other) {
    return other.receiver() && program.same_variable(other.receiver(), call.receiver()) &&
           program.is_literal_false(other.positional(0)) !=
               program.is_literal_false(call.positional(0));
  });
}

// self.neck.bias.requires_grad_(False) in a model's __init__: one parameter, of a layer that the
// change below does not name.
bool is_of_another_layer(const Program& program, const diagnose::CallRef& call, Ref change) {
  const Ref parameter = call.receiver();
  if (parameter.kind() != Kind::attribute || !program.enclosing_class(parameter)) return false;
  const std::string_view name = parameter.child(Field::attribute).text();
  const Ref layer = parameter.child(Field::object);
  if ((name != "bias" && name != "weight") || layer.kind() != Kind::attribute) return false;
  const auto function = program.enclosing_function(change);
  const std::string_view around =
      function ? change.module->text(function.function->body) : change.text();
  return !facts::contains(around, layer.child(Field::attribute).text());
}

struct ParameterChange {
  Ref parameter;
  Ref flag;
};

// The parameters whose requires_grad changes: p in p.requires_grad = flag, p.requires_grad_(flag).
std::vector<ParameterChange> changed_parameters(const Program& program) {
  std::vector<ParameterChange> out;
  for (const Module* module : program.modules())
    for (const std::uint32_t index : module->defs_of("requires_grad", true)) {
      const Def& def = module->defs()[index];
      if (def.value != kNoNode && !is_switch(program, def, *module))
        out.push_back(
            {{module, module->tree().child(def.target, Field::object)}, {module, def.value}});
    }
  for (const CallRef& call : program.calls_named("requires_grad_"))
    if (const Ref flag = call.argument(0, "requires_grad");
        call.receiver() && (!flag || !facts::is_parameter(program, flag)))
      out.push_back({call.receiver(), flag});
  return out;
}

// Net() and build_net() of a file of the project that is not at hand: what libraries make trains as
// a whole.
bool is_made_by_project(const Program& program, Ref model) {
  constexpr std::string_view kLibraries[] = {"torch",           "timm.",  "transformers.",
                                             "segmentation_mo", "monai.", "diffusers."};
  const auto& sources = program.module_sources(model);
  return std::any_of(sources.begin(), sources.end(), [&](const Source& source) {
    const CallRef made = program.as_call(source.ref);
    if (!made || program.class_of_call(made) || program.callee(made)) return false;
    const std::string_view path = made.call->path;
    return !path.empty() &&
           std::none_of(std::begin(kLibraries), std::end(kLibraries),
                        [&](std::string_view each) { return path.starts_with(each); });
  });
}

// p.requires_grad = True for good, of a model that a file out of sight makes and in a program that
// freezes nothing: the line has a point only where the constructor has frozen the parameter.
bool unfreezes_what_is_unseen(const Program& program, const Wrap& wrap, Ref change, Ref value) {
  // All of the model made trainable changes nothing as a rule.
  if (program.guards(change).empty()) return false;
  if (!program.is_literal_true(value) || !is_made_by_project(program, wrap.module)) return false;
  const auto changes = changed_parameters(program);
  return std::all_of(changes.begin(), changes.end(), [&](const ParameterChange& change) {
    return !change.flag || program.is_literal_true(change.flag);
  });
}

// for p in net.module.parameters(), all there are; a part that is switched on had some reason to be
// off, unless its class is in sight or of a library, which freezes nothing.
bool has_nothing_frozen(const Program& program, const Wrap& wrap, Ref change) {
  const Ref loop = program.innermost_loop(change);
  const CallRef over = program.as_call(loop.child(Field::right));
  if (!over || !over.receiver() || !over.call->name.ends_with("parameters")) return false;
  Ref whole = over.receiver();
  if (whole.kind() == Kind::attribute && whole.child(Field::attribute).text() == "module")
    whole = whole.child(Field::object);
  if (program.wrap_of(whole) != nullptr || !wrap.classes.empty()) return true;
  const CallRef made = program.made_by(wrap.module);
  const std::string_view path = made ? made.call->path : std::string_view();
  return path.starts_with("torchvision.") || path.starts_with("timm.") ||
         path.starts_with("transformers.");
}

// for p in net.parameters(): p.requires_grad = True, once and whatever is asked for, in a program
// that freezes nothing: all of them had gradients when the model was wrapped.
bool changes_nothing(const Program& program, const Wrap& wrap, Ref change, Ref value) {
  if (!program.is_literal_true(value) || !program.guards(change).empty() ||
      program.loops_around(change).size() != 1 || program.mentions("freeze") ||
      !has_nothing_frozen(program, wrap, change))
    return false;
  const auto changes = changed_parameters(program);
  return std::all_of(changes.begin(), changes.end(), [&](const ParameterChange& each) {
    return each.flag && program.is_literal_true(each.flag);
  });
}

// Wrapped with all parameters trainable and a search for unused ones, DDP bears that they are
// frozen and unfrozen later: it has a bucket for each and marks those without a gradient. What was
// frozen before has none, and is not missed when it is frozen again.
bool bears_freezing(const Program& program, const Wrap& wrap, Ref change, Ref value) {
  if (!program.is_literal_true(wrap.call.keyword("find_unused_parameters"))) return false;
  if (program.is_literal_false(value)) return true;
  if (unfreezes_what_is_unseen(program, wrap, change, value)) return false;
  for (const Module* module : program.modules())
    for (const std::uint32_t index : module->defs_of("requires_grad", true))
      if (program.runs_before({module, module->defs()[index].target}, wrap.call.ref()))
        return false;
  const auto calls = program.calls_named("requires_grad_");
  return std::none_of(calls.begin(), calls.end(), [&](const diagnose::CallRef& call) {
    return !is_of_another_layer(program, call, change) &&
           program.runs_before(call.ref(), wrap.call.ref());
  });
}

// Another line of the function wraps the model with a search for unused parameters: in those runs
// what is frozen is found.
std::string why_borne(const Program& program, const Wrap& wrap, Ref value) {
  const auto function = program.enclosing_function(wrap.call.ref());
  const auto& wraps = program.wraps();
  const bool is_found =
      program.is_literal_false(value) &&
      std::any_of(wraps.begin(), wraps.end(), [&](const Wrap& other) {
        return other.kind == Wrapper::ddp &&
               program.enclosing_function(other.call.ref()) == function &&
               program.assigned_name(other.call.ref()) == program.assigned_name(wrap.call.ref()) &&
               program.is_literal_true(other.call.keyword("find_unused_parameters")) &&
               facts::exclusive(other.call.ref(), wrap.call.ref());
      });
  return is_found ? "some runs search for unused parameters, and find what is frozen" : "";
}

// What the trials did: "frozen" or "unfrozen"; neither where the value is not known.
std::string_view trial_of(const Program& program, Ref value) {
  if (!value) return {};
  if (program.is_literal_true(value)) return "unfrozen";
  return program.is_literal_false(value) ? "frozen" : std::string_view();
}

constexpr const char* kSwitched =
    "requires_grad changes after the model was wrapped: DDP keeps the list it saw when it was "
    "built, so unfrozen parameters are never synchronised";

constexpr const char* kFrozen =
    "parameters are frozen after the model was wrapped: DDP still waits for their gradients, and "
    "the second step raises \"Expected to have finished reduction in the prior iteration\"";

std::string message_for(const Program& program, Ref value) {
  return value && program.is_literal_false(value) ? kFrozen : kSwitched;
}

constexpr std::string_view kChangedKey = "parameters_changed_after_wrap";

// for n, p in ...: p.requires_grad = False if "encoder" in n, else True: the line that freezes
// tells of both, as what stays trainable was so when the model was wrapped.
bool only_freezes_others(const Program& program, const Module& module, const Def& change) {
  const Ref target{&module, change.target};
  const Ref loop = program.innermost_loop(target);
  if (!loop || !program.is_literal_true(target.with(change.value))) return false;
  const auto indices = module.defs_of("requires_grad", true);
  return std::any_of(indices.begin(), indices.end(), [&](const std::uint32_t index) {
    const Def& other = module.defs()[index];
    return other.value != kNoNode && program.is_literal_false({&module, other.value}) &&
           program.innermost_loop({&module, other.target}) == loop;
  });
}

// In the loop over batches itself, or in a helper that is called nowhere else.
bool is_in_batches(const Program& program, Ref node, int depth = 0) {
  constexpr int kHelpers = 3;
  const auto is_inside = [&](Ref at) {
    const auto* loop = facts::training_loop_of(program, at);
    return loop != nullptr && at.module == loop->batches.module &&
           at.module->tree().contains(loop->batches.node, at.node);
  };
  if (is_inside(node)) return true;
  const auto helper = program.enclosing_function(node);
  if (!helper || depth > kHelpers) return false;
  const auto& sites = program.call_sites(helper);
  return !sites.empty() && std::all_of(sites.begin(), sites.end(), [&](const CallRef& site) {
    return is_in_batches(program, site.ref(), depth + 1);
  });
}

bool trains_after(const Program& program, Ref change) {
  const auto& loops = program.training_loops();
  return std::any_of(loops.begin(), loops.end(), [&](const diagnose::TrainingLoop& loop) {
    return std::any_of(loop.backwards.begin(), loop.backwards.end(), [&](const CallRef& backward) {
      return program.runs_before(change, backward.ref());
    });
  });
}

// for p in accelerator.unwrap_model(model).parameters(): p.requires_grad = ..., below prepare(),
// which wraps in DDP wherever several processes run.
void check_prepared_parameters(const Program& program, Report& report) {
  if (program.mentions("find_unused_parameters")) return;
  std::vector<Ref> told;
  for (const auto& [parameter, value] : changed_parameters(program))
    for (const Source& source : program.sources(base_of(parameter))) {
      const CallRef list = program.as_call(source.ref);
      if (source.how != Source::How::loop_item || !list || !list.receiver()) continue;
      const CallRef unwrap = unwrapping_in(program, list.receiver());
      if (!unwrap || std::find(told.begin(), told.end(), unwrap.ref()) != told.end()) continue;
      const CallRef prepare = preparation_gone_below(program, unwrap.positional(0));
      if (!prepare || !is_of_accelerator(program, prepare) ||
          !only_runs_before(program, prepare.ref(), unwrap.ref()) ||
          is_in_batches(program, unwrap.ref()) || program.is_evaluation(unwrap.ref()) ||
          !trains_after(program, unwrap.ref()) ||
          is_left_to_no_optimizer(program, unwrap.positional(0)))
        continue;
      told.push_back(unwrap.ref());
      Finding& finding =
          report.at(unwrap.ref(), Confidence::likely,
                    "requires_grad changes after accelerator.prepare(): DDP keeps the list it "
                    "saw when it was built, so unfrozen parameters are never synchronised");
      as_in_trial(finding, trial_of(program, value));
      finding.severity = Severity::warning;  // it may run as one process
      finding.help = "Change parameters before prepare(), and prepare again after each change.";
    }
}

// With a static graph the first iteration shows which parameters take part.
bool is_static_graph(const Program& program, const Wrap& wrap) {
  return program.is_literal_true(wrap.call.keyword("static_graph")) ||
         !program.calls_named("_set_static_graph").empty();
}

// All steps of training that are in sight are over, and no loop comes back to one.
bool trains_no_more(const Program& program, Ref change) {
  if (program.training_loops().empty() || trains_after(program, change)) return false;
  // finetune(model, loader) of a file that is not there.
  const diagnose::Module& file = *change.module;
  if (std::any_of(file.calls().begin(), file.calls().end(), [&](const diagnose::Call& made) {
        const CallRef call{&file, &made};
        return made.node > change.node && made.api == diagnose::Api::none && !call.receiver() &&
               call.positional(0) && says_any(made.name, {"train", "fit", "tune"}) &&
               !program.callee(call);
      }))
    return false;
  const auto loops = program.loops_around(change);
  return std::none_of(loops.begin(), loops.end(), [&](Ref loop) {
    return program.subtree_calls(loop, [](CallRef call) { return call.call->name == "backward"; });
  });
}

constexpr const char* kAllFrozen =
    "the model that is trained is frozen as a whole after it was wrapped: backward() finds nothing "
    "that needs gradients";

constexpr const char* kReplaced =
    "a layer is replaced after the model was wrapped: DDP waits for gradients of the old one";

constexpr const char* kDrawn =
    "weights are drawn at random after the model was wrapped: DDP copies parameters between ranks "
    "only when it is built, so each rank trains from weights of its own";

void check_late_layers(const Program& program, Report& report) {
  const auto tell = [&](const CallRef& call, Ref model, const char* message) {
    const Wrap* wrap = changed_wrap(program, model, call.ref(), OfApex::too);
    if (wrap == nullptr || !is_trained(program, *wrap) || is_in_batches(program, call.ref()) ||
        is_taken_out_above(program, model, call) ||
        is_followed_by_wrap(program, *wrap, call.ref()) || trains_no_more(program, call.ref()))
      return;
    Finding& finding = in_no_trial(report.at(call.ref(), Confidence::likely, message));
    finding.help = "Change the model before wrapping.";
  };
  for (const LateLayers& late : calls_that_replace_layers(program))
    tell(late.call, late.model, kReplaced);
  for (const LateDraw& draw : draws_on_every_rank(program)) tell(draw.call, draw.model, kDrawn);
}

// DDP(model) of a class with nn.LazyLinear, which no batch has gone through.
void check_lazy_layers(const Program& program, Report& report) {
  for (const Wrap& wrap : program.wraps()) {
    if (wrap.kind != Wrapper::ddp) continue;
    const CallRef layer = uninitialised_layer(program, wrap);
    if (!layer) continue;
    in_no_trial(report.at(wrap.call.ref(), Confidence::likely,
                          std::string(layer.call->name) +
                              " has no parameters before the first batch: DDP raises \"Modules "
                              "with uninitialized parameters can't be used\""))
        .help = "Run one batch through the model before it is wrapped.";
  }
}

}  // namespace

void check_parameters_changed_after_wrap(const Program& program, Report& report) {
  if (accelerate_wraps(program)) check_prepared_parameters(program, report);
  if (!program.has_ddp()) return;
  const auto flag = [&](Ref where, Ref object, std::string message, bool freezes = false,
                        Ref value = {}) {
    const Wrap* wrap = changed_wrap(program, object, where);
    if (wrap == nullptr || !is_trained(program, *wrap) ||
        is_wrapped_again(program, object, where, *wrap))
      return;
    if (freezes &&
        (is_static_graph(program, *wrap) || bears_freezing(program, *wrap, where, value) ||
         changes_nothing(program, *wrap, where, value)))
      return;
    // A GAN switches the other network off and on in every step; DDP of that network is then
    // unused.
    if (is_in_batches(program, where) || is_wrapped_anew_below(program, *wrap, where) ||
        trains_no_more(program, where))
      return;
    Finding& finding = report.at(where, Confidence::likely, std::move(message));
    if (freezes) as_in_trial(finding, trial_of(program, value));
    finding.help = "Change parameters before wrapping, and wrap again after each later change.";
    if (freezes) tell_as_note(finding, why_borne(program, *wrap, value));
  };
  for (const Module* module : program.modules()) {
    for (const std::uint32_t index : module->defs_of("requires_grad", true)) {
      const Def& change = module->defs()[index];
      if (is_switch(program, change, *module) || only_freezes_others(program, *module, change) ||
          freezes_all(program, change, *module))
        continue;
      const Ref target{module, change.target};
      if (freezes_the_trained(program, change, *module)) {
        flag(target, target.child(Field::object), kAllFrozen);
        continue;
      }
      flag(target, target.child(Field::object), message_for(program, target.with(change.value)),
           true, target.with(change.value));
    }
    for (const Def& def : module->defs()) {
      if (!def.is_attribute || def.kind != DefKind::assign || def.value == kNoNode) continue;
      const Ref target{module, def.target};
      if (facts::contains(target.text(), ".module.") && is_layer(program, target.with(def.value)))
        flag(target, target.child(Field::object), kReplaced);
    }
  }
  for (const CallRef& call : program.calls_named("setattr"))
    if (facts::contains(call.positional(0).text(), ".module") &&
        is_layer(program, call.positional(2)))
      flag(call.ref(), call.positional(0), kReplaced);
  for (const CallRef& call : unseen_switches(program))
    flag(call.ref(), call.argument(0, "model"), kSwitched);
  for (const CallRef& call : seen_switches(program))
    flag(call.ref(), call.positional(0), kSwitched, true);
  for (const auto& [call, object] : switches_by_epoch(program))
    if (object) flag(call.ref(), object, kSwitched, true);
  for (const auto& [call, object] : unseen_stages(program))
    flag(call.ref(), object,
         "what is frozen changes after the model was wrapped: DDP keeps the list of parameters it "
         "saw when it was built",
         true);
  for (const CallRef& call : program.calls_named("requires_grad_"))
    if (call.receiver() && !is_toggled(program, call))
      flag(call.ref(), call.receiver(),
           "requires_grad_ is called after the model was wrapped: DDP keeps the list of parameters "
           "it saw when it was built",
           true, call.argument(0, "requires_grad"));
  check_late_layers(program, report);
  check_lazy_layers(program, report);
}

void judge_parameters_changed_after_wrap(const RunEvidence& run, RunReport& report) {
  const Json* names = run.first(kChangedKey);
  if (names == nullptr || names->empty()) return;
  const std::string error = run.error_with("Expected to have finished reduction");
  const bool drift = ranks_differ(run, "changed_gradient_sum");
  if (error.empty() && !drift) return;
  Finding& finding =
      report.add(Confidence::certain,
                 "parameters were frozen, unfrozen or added after the model was wrapped (" +
                     listed(*names) + "): " +
                     (drift ? "their gradients are not reduced, sums by rank " +
                                  rank_figures(run, "changed_gradient_sum")
                            : "the reducer waits for gradients that no longer come"));
  finding.help = "Change parameters before wrapping, and wrap again after every change.";
  finding.evidence.emplace_back("parameters", listed(*names));
  if (!error.empty()) finding.evidence.emplace_back("error", error);
}

Price price_parameters_changed_after_wrap(const RunEvidence& broken, const RunEvidence& cured) {
  if (!broken.error_with("Expected to have finished reduction").empty())
    return price_of_crash(broken, cured, "Expected to have finished reduction");
  Price price;
  price.reproduced = ranks_differ(broken, "changed_gradient_sum");
  price.gone = cured.first("changed_gradient_sum") != nullptr &&
               !ranks_differ(cured, "changed_gradient_sum");
  price.cost = rank_spread(broken, "changed_gradient_sum");
  price.unit = "difference of gradient sums between ranks";
  price.seen = "silent: gradient sums " + rank_figures(broken, "changed_gradient_sum") +
               " by rank instead of " + figure(cured.number("changed_gradient_sum")) +
               " on all of them";
  return price;
}

}  // namespace bench::pitfalls
