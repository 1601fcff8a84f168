#include "diagnose/model/made_at.hpp"
#include "diagnose/model/role_names.hpp"
#include "diagnose/model/usual_names.hpp"
#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/judges.hpp"
#include "scenarios/pitfalls/laboratory/trial_prices.hpp"
#include "scenarios/pitfalls/program/argument_for.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/handed_out.hpp"
#include "scenarios/pitfalls/program/words.hpp"
#include "scenarios/pitfalls/wrappers/model_moves.hpp"
#include "scenarios/pitfalls/wrappers/other_names_of_models.hpp"

#include <algorithm>
#include <cctype>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Kind;
using diagnose::Source;

namespace {

// model = SyncBatchNorm.convert_sync_batchnorm(model), DDP(model), and Apex's amp.initialize(model,
// optimizer): the parameters are those of before.
bool keeps_parameters(const Program& program, Ref value, Ref model) {
  const CallRef call = program.made_by(value);
  return call && call.positional(0) && call.positional(0).text() == model.text() &&
         (call.call->api == Api::ddp || call.call->api == Api::data_parallel ||
          says_any(call.call->name, {"sync", "compile", "initialize"}));
}

// model = model.to(device); model, optimizer = prepare(model, optimizer)
bool is_given_back(const diagnose::Module& module, const diagnose::Def& def, const CallRef& move) {
  diagnose::NodeId line = module[def.target].parent;
  if (module[line].kind != diagnose::Kind::assignment && module[line].parent != diagnose::kNoNode)
    line = module[line].parent;
  return module[line].kind == diagnose::Kind::assignment &&
         module.tree().contains(line, move.call->node);
}

// The name is given a new model between the optimizer and the move.
bool is_another_model(const Program& program, Ref model, const CallRef& optimizer,
                      const CallRef& move) {
  const auto& module = *model.module;
  const auto inside = program.enclosing_function(move.ref());
  for (const std::uint32_t index : module.defs_of(model.text(), false)) {
    const auto& def = module.defs()[index];
    if (def.kind == diagnose::DefKind::assign && def.target > optimizer.call->node &&
        def.target < move.call->node &&
        program.enclosing_function({&module, def.target}) == inside &&
        !facts::exclusive({&module, def.target}, optimizer.ref()) &&
        !keeps_parameters(program, {&module, def.value}, model))
      return !is_given_back(module, def, move);
  }
  return false;
}

// The optimizer is made under a condition of its own, and its name stands nowhere below the move:
// what is moved there is not trained any more, as where one part of a script trains and another
// tests.
bool is_done_with(const Program& program, const CallRef& optimizer, const CallRef& move) {
  const std::string_view name = program.assigned_name(optimizer.ref());
  const auto& module = *move.module;
  if (name.empty() || name.starts_with("self.") || optimizer.module != move.module ||
      module.function_of(optimizer.call->node) != module.function_of(move.call->node) ||
      !module.defs_of(name, true).empty())
    return false;
  const auto around = program.guards(move.ref());
  const auto made_if = program.guards(optimizer.ref());
  const auto is_around = [&](const diagnose::Guard& guard) {
    return std::any_of(around.begin(), around.end(), [&](const diagnose::Guard& other) {
      return other.condition == guard.condition;
    });
  };
  if (std::all_of(made_if.begin(), made_if.end(), is_around)) return false;
  const auto& tree = module.tree();
  for (diagnose::NodeId at = tree[move.call->node].last; at < tree.size(); ++at)
    if (tree[at].kind == diagnose::Kind::identifier && tree.text(at) == name) return false;
  return true;
}

// model of model.head; empty for what is part of nothing.
Ref whole_of(Ref part) {
  return part.kind() == diagnose::Kind::attribute ? part.child(diagnose::Field::object) : Ref{};
}

// get_param_groups(model, decay), and the same by a name: by what it is called, such a function
// gives parameters of the models that it is given.
void add_given_to_grouping(const Program& program, Ref parameters, std::vector<Ref>& models) {
  const CallRef call = program.made_by(parameters);
  if (!call || !says_any(call.call->name, {"param", "group", "weight_decay"}) ||
      call.call->name.ends_with("parameters"))
    return;
  const Ref given = call.positional(0);
  if (given && (given.kind() == Kind::identifier || given.kind() == Kind::attribute))
    models.push_back(given);
}

// The models whose parameters these are: model.parameters(), groups over named_parameters(), and
// lists that are filled in a loop over them. Parts of a model move with it:
// model.head.parameters().
std::vector<Ref> models_behind(const Program& program, Ref parameters) {
  std::vector<Ref> out;
  const auto add = [&](const CallRef& call) {
    // model.weight_parameters(), of a class that groups them itself.
    if (!call || !call.receiver() || !call.call->name.ends_with("parameters")) return;
    for (Ref model = call.receiver(); model && model.text() != "self"; model = whole_of(model))
      if (std::find(out.begin(), out.end(), model) == out.end()) out.push_back(model);
  };
  const auto add_all = [&](Ref value) {
    for (const CallRef& call : facts::calls_in(value)) add(call);
    for (const Ref call : facts::calls_behind(program, value)) add(program.as_call(call));
  };
  add_all(parameters);
  add_given_to_grouping(program, parameters, out);
  const auto inside = program.enclosing_function(parameters);
  std::vector<Ref> written{parameters};
  for (const Source& source : program.sources(parameters))
    if (source.ref.module == parameters.module) written.push_back(source.ref);
  const auto names = [&](std::string_view list) {
    const auto& tree = parameters.module->tree();
    for (const Ref value : written)
      for (diagnose::NodeId at = value.node; at < tree[value.node].last; ++at)
        if (tree[at].kind == diagnose::Kind::identifier && tree.text(at) == list) return true;
    return false;
  };
  for (const CallRef& append : program.calls_named("append")) {
    const Ref list = append.receiver();
    if (list.kind() != diagnose::Kind::identifier || append.module != parameters.module ||
        program.enclosing_function(append.ref()) != inside || append.call->node > parameters.node)
      continue;
    if (names(list.text()))
      add_all(program.innermost_loop(append.ref()).child(diagnose::Field::right));
  }
  std::erase_if(out, [&](Ref model) {
    return model.module != parameters.module || program.enclosing_function(model) != inside;
  });
  return out;
}

// cls = SGD if args.sgd else AdamW; cls(model.parameters())
std::vector<CallRef> made_by_chosen_class(const Program& program) {
  std::vector<CallRef> out;
  if (program.calls_named("parameters").empty()) return out;
  for (const diagnose::Module* module : program.modules())
    for (const diagnose::Call& each : module->calls()) {
      const CallRef made{module, &each};
      const Ref maker{module, each.function};
      if (each.api != Api::none || maker.kind() != diagnose::Kind::identifier ||
          !program.may_be_given(maker))
        continue;
      if (!made.argument(0, "params")) continue;
      for (const Source& cls : program.sources(maker))
        if (cls.ref.module->api(cls.ref.node) == Api::optimizer) {
          out.push_back(made);
          break;
        }
    }
  return out;
}

// build_optimizer(args, model) of a file that is not at hand, instantiate(cfg.optimizer, ...).
bool may_build_optimizer(std::string_view name) {
  return diagnose::makes_from_settings(name) ||
         (says_any(name, {"optimizer"}) &&
          says_any(name, {"build", "make", "create", "get", "init", "setup", "configure"}) &&
          !says_any(name, {"sched", "state", "param"}));
}

bool builds_out_of_sight(const Program& program, const CallRef& call) {
  const std::string_view name = call.call->name;
  if (diagnose::makes_from_settings(name))
    return call.positional(0) && diagnose::names_optimizer(diagnose::last_word(call.positional(0)));
  return call.call->api == Api::none && may_build_optimizer(name) && !program.callee(call) &&
         !program.class_of_call(call) && !program.assigned_name(call.ref()).empty();
}

// What the optimizer is made for: a model that a helper is given, or those whose parameters it is.
std::vector<Ref> models_of(const Program& program, const CallRef& optimizer) {
  const Ref named = optimizer.keyword("params");
  const Ref parameters = named ? named : optimizer.positional(0);
  if (optimizer.call->api == Api::optimizer || !builds_out_of_sight(program, optimizer))
    return parameters ? models_behind(program, parameters) : std::vector<Ref>{};
  std::vector<Ref> out;
  for (const Ref argument : facts::arguments_of(optimizer)) {
    if (argument.kind() == diagnose::Kind::identifier ||
        argument.kind() == diagnose::Kind::attribute)
      out.push_back(argument);
    for (const Ref model : models_behind(program, argument)) out.push_back(model);
  }
  return out;
}

bool moves_models(const diagnose::FunctionRef& maker) {
  const auto calls = facts::calls_in({maker.module, maker.function->body});
  return std::any_of(calls.begin(), calls.end(), [](const CallRef& call) {
    return call.call->name == "to" || call.call->name == "cuda";
  });
}

// The same as the caller knows them, who has the optimizer from a function that builds it. One that
// moves models itself leaves none to ask about.
std::vector<Ref> models_where_made(const Program& program, const CallRef& optimizer) {
  const CallRef made = diagnose::made_at(program, optimizer);
  std::vector<Ref> models = models_of(program, optimizer);
  if (made.ref() == optimizer.ref()) return models;
  const auto maker = program.enclosing_function(optimizer.ref());
  if (moves_models(maker)) return {};
  const auto caller = program.enclosing_function(made.ref());
  for (Ref& model : models)
    if (!model.text().starts_with("self.")) model = diagnose::seen_in(program, model, caller);
  std::erase_if(models, [](Ref model) { return !model; });
  return models;
}

// Where the optimizer is made as a caller sees it, and the models that it is made for.
struct Making {
  CallRef at;
  std::vector<Ref> models;
  std::string_view name;  // of the optimizer
};

// net, optimizer = build() of a function that returns both: that call, and net. The same of
// optimizer, schedule = build(net).
Making handed_back_together(const Program& program, const CallRef& optimizer) {
  const auto maker = program.enclosing_function(optimizer.ref());
  const std::string_view name = program.assigned_name(optimizer.ref());
  if (!maker || name.empty() || maker.function->returns.size() != 1) return {};
  const auto& sites = program.call_sites(maker);
  const Ref returned{maker.module, maker.function->returns.front()};
  if (sites.size() != 1 || returned.kind() != diagnose::Kind::tuple) return {};
  const auto& caller = *sites.front().module;
  const diagnose::NodeId set = caller[sites.front().call->node].parent;
  if (set == diagnose::kNoNode || caller[set].kind != diagnose::Kind::assignment) return {};
  const diagnose::NodeId targets = caller.tree().child(set, diagnose::Field::left);
  const auto& tree = maker.module->tree();
  const std::size_t count = tree.child_count(returned.node);
  if (targets == diagnose::kNoNode || caller.tree().child_count(targets) != count) return {};
  const auto is_returned = [&](std::string_view text) {
    for (std::size_t i = 0; i < count; ++i)
      if (tree.text(tree.child_at(returned.node, i)) == text) return static_cast<int>(i);
    return -1;
  };
  const int place = is_returned(name);
  if (place < 0) return {};
  const auto target = [&](int at) {
    return Ref{&caller, caller.tree().child_at(targets, static_cast<std::size_t>(at))};
  };
  Making out{sites.front(), {}, target(place).text()};
  const auto around = program.enclosing_function(sites.front().ref());
  for (const Ref model : models_of(program, optimizer))
    if (const int at = is_returned(model.text()); at >= 0)
      out.models.push_back(target(at));
    else if (const Ref given = diagnose::seen_in(program, model, around);
             given && facts::is_parameter(program, model))
      out.models.push_back(given);
  return out;
}

Making making_of(const Program& program, const CallRef& optimizer) {
  if (const auto maker = program.enclosing_function(optimizer.ref()); maker && !moves_models(maker))
    if (Making together = handed_back_together(program, optimizer); !together.models.empty())
      return together;
  const CallRef at = diagnose::made_at(program, optimizer);
  Making out{at, models_where_made(program, optimizer), program.assigned_name(at.ref())};
  add_other_names(program, out.models);
  return out;
}

// Net() and resnet50(), not create_model(args), which may have moved it already.
bool is_built_on_cpu(const Program& program, Ref model) {
  const auto& sources = program.sources(model);
  return !sources.empty() && std::all_of(sources.begin(), sources.end(), [&](const Source& source) {
    const CallRef made = program.as_call(source.ref);
    return made && !program.callee(made) && made.call->api != Api::ddp &&
           (program.class_of_call(made) || made.call->api == Api::torchvision_model ||
            std::isupper(static_cast<unsigned char>(made.call->name.front())) != 0);
  });
}

// Adam, and SGD with momentum.
bool has_states(const CallRef& optimizer) {
  return optimizer.call->name != "SGD" || optimizer.keyword("momentum");
}

// optimizer.load_state_dict(states) between the two: the states come to the device of the
// parameters, which they leave afterwards. Plain SGD has none.
bool loads_states_between(const Program& program, const CallRef& optimizer, const CallRef& move) {
  const std::string_view name = program.assigned_name(optimizer.ref());
  const auto loads = program.calls_named("load_state_dict");
  // for state in optimizer.state: ..., move_states(optimizer, device)
  if (name.empty() || program.mentions(std::string(name) + ".state.") ||
      program.mentions(std::string(name) + ".state[") ||
      program.mentions(std::string(name) + ".state:"))
    return false;
  const auto given = calls_given(program, [&](Ref value) {
    return value.module == move.module &&
           (value.text() == name || value.text().starts_with(std::string(name) + ".state"));
  });
  if (std::any_of(given.begin(), given.end(), [](const CallRef& call) {
        return facts::contains(facts::lowered(call.call->name), "opt") ||
               facts::contains(facts::lowered(call.call->name), "state") ||
               facts::contains(facts::lowered(call.call->name), "move") ||
               facts::contains(facts::lowered(call.call->name), "device");
      }))
    return false;
  return program.enclosing_function(move.ref()) == program.enclosing_function(optimizer.ref()) &&
         std::any_of(loads.begin(), loads.end(), [&](const CallRef& load) {
           return load.module == move.module && load.receiver() && load.receiver().text() == name &&
                  load.call->node > optimizer.call->node && load.call->node < move.call->node &&
                  !facts::exclusive(load.ref(), move.ref());
         });
}

// optimizer = AdamW(model.parameters()), and FSDP(model) below it, which puts flat parameters in
// their place unless it is told to keep them.
void check_flattened_after(const Program& program, const CallRef& optimizer, Report& report) {
  if (optimizer.call->api != Api::optimizer) return;
  const CallRef made = diagnose::made_at(program, optimizer);
  for (const Ref model : models_where_made(program, optimizer))
    for (const CallRef& fsdp : program.calls(Api::fsdp)) {
      const CallRef wrap = diagnose::made_at(program, fsdp);
      const auto around = program.enclosing_function(wrap.ref());
      const Ref wrapped = diagnose::seen_in(program, fsdp.argument(0, "module"), around);
      if (!wrapped || wrap.module != made.module || fsdp.has_splat() ||
          !program.same_variable(wrapped, model) || wrap.call->node < made.call->node ||
          around != program.enclosing_function(made.ref()) ||
          facts::exclusive(wrap.ref(), made.ref()) || fsdp.keyword("use_orig_params"))
        continue;
      const auto optimizers = program.calls(Api::optimizer);
      if (std::any_of(optimizers.begin(), optimizers.end(), [&](const CallRef& later) {
            return later.module == wrap.module &&
                   diagnose::made_at(program, later).call->node > wrap.call->node;
          }))
        continue;
      Finding& finding =
          report.at(fsdp.ref(), Confidence::likely,
                    "FSDP puts flat parameters in the place of those that the optimizer was built "
                    "from: its steps change nothing that the model uses");
      finding.severity = Severity::error;
      finding.help = "Wrap the model first, then build the optimizer from its parameters.";
      return;
    }
}

// .to("cpu"), .to(torch.float16), .to(memory_format=...)
bool goes_to_no_gpu(const CallRef& move) {
  const Ref target = move.argument(0, "device");
  if (move.keyword("memory_format") || move.keyword("dtype")) return true;
  return target &&
         (facts::contains(target.text(), "cpu") || facts::contains(target.text(), "float") ||
          facts::contains(target.text(), "half"));
}

// Of a model that the optimizer was built for above, and that has come to no device before.
bool is_move_too_late(const Program& program, Ref model, const CallRef& optimizer,
                      const ModelMove& move) {
  return move.at.call->node >= optimizer.call->node &&
         !facts::exclusive(move.at.ref(), optimizer.ref()) &&
         !is_another_model(program, model, optimizer, move.at) &&
         !is_done_with(program, optimizer, move.at) &&
         program.innermost_loop(move.at.ref()) == program.innermost_loop(optimizer.ref()) &&
         !goes_to_no_gpu(move.call);
}

// Adagrad alone makes its sums with the object, beside the parameters (torch/optim/adagrad.py of
// PyTorch 2); the others make them in their first step.
bool makes_states_at_once(const CallRef& optimizer) {
  return optimizer.call->api == Api::optimizer && optimizer.call->name == "Adagrad";
}

// A move that puts new parameters in the place of the old ones: XLA's, and where the program asks
// for it. That to a GPU swaps their data, which optimizers do not notice.
bool replaces_parameters(const Program& program) {
  return program.imports("torch_xla") ||
         program.mentions("set_overwrite_module_params_on_conversion(True");
}

void tell_what_stays_behind(const Program& program, const CallRef& each, Ref model,
                            const CallRef& optimizer, const CallRef& move, Finding& finding) {
  finding.severity = Severity::info;
  if (is_built_on_cpu(program, model) && has_states(each) &&
      loads_states_between(program, optimizer, move)) {
    finding.message =
        "the optimizer's states are loaded before the model moves to its device: they stay "
        "behind, and the first step meets tensors of two devices";
    finding.severity = Severity::error;
  } else if (makes_states_at_once(each)) {
    finding.message =
        "the model moves to its device below Adagrad, which makes its sums with the object: they "
        "stay behind, and the first step meets tensors of two devices";
    finding.severity = is_built_on_cpu(program, model) ? Severity::error : Severity::warning;
  } else if (replaces_parameters(program)) {
    finding.severity = Severity::warning;
  }
}

bool check_moves(const Program& program, const CallRef& each, const Making& making, Ref model,
                 Report& report) {
  auto moves = moves_of_model(program, model, making.name);
  const CallRef optimizer = seen_beside(program, making.at, model, moves);
  std::sort(moves.begin(), moves.end(), [](const ModelMove& a, const ModelMove& b) {
    return a.at.call->node < b.at.call->node;
  });
  if (is_moved_before(program, model, optimizer, moves)) return false;
  for (const ModelMove& move : moves) {
    if (!is_move_too_late(program, model, optimizer, move)) continue;
    Finding& finding = report.at(
        move.call.ref(), Confidence::likely,
        "the model moves to its device after the optimizer was built from its parameters");
    finding.help = "Move the model first, then build the optimizer.";
    // The trial's move replaces the parameters, as XLA's; that to a GPU swaps their data.
    if (!program.imports("torch_xla")) in_no_trial(finding);
    tell_what_stays_behind(program, each, model, optimizer, move.at, finding);
    return true;
  }
  return false;
}

}  // namespace

void check_optimizer_before_device_move(const Program& program, Report& report) {
  for (const CallRef& optimizer : program.calls(Api::optimizer))
    check_flattened_after(program, optimizer, report);
  // for state in optimizer.state.values(): ...; the states are moved after the model.
  if (program.mentions(".state.values()") || program.mentions("optimizer_to")) return;
  std::vector<CallRef> optimizers(program.calls(Api::optimizer).begin(),
                                  program.calls(Api::optimizer).end());
  for (const CallRef& made : program.calls_named("instantiate"))  // Hydra's
    if (made.keyword("params")) optimizers.push_back(made);
  for (const CallRef& made : made_by_chosen_class(program)) optimizers.push_back(made);
  for (const CallRef& made : program.calls_that(may_build_optimizer))
    if (builds_out_of_sight(program, made)) optimizers.push_back(made);
  for (const CallRef& each : optimizers) {
    const Making making = making_of(program, each);
    for (const Ref model : making.models)
      if (check_moves(program, each, making, model, report)) return;
  }
}

namespace {

// Parameters that the optimizer updates and the model does not have.
double orphans(const RunEvidence& run) {
  return run.number("optimizer_parameters") - run.number("optimizer_parameters_in_model");
}

}  // namespace

void judge_optimizer_before_device_move(const RunEvidence& run, RunReport& report) {
  if (!(orphans(run) > 0)) return;
  Finding& finding =
      report.add(Confidence::certain, "the optimizer holds " + figure(orphans(run)) +
                                          " parameters that are not the model's: its steps change "
                                          "nothing");
  finding.severity = Severity::warning;  // a run has shown what a script only suggests
  finding.help = "Move the model first, then build the optimizer.";
  finding.evidence.emplace_back("change of the weights", figure(run.number("weight_change")));
}

Price price_optimizer_before_device_move(const RunEvidence& broken, const RunEvidence& cured) {
  Price price;
  price.reproduced = orphans(broken) > 0 && broken.number("weight_change") == 0;
  price.gone = orphans(cured) == 0 && std::fabs(cured.number("weight_change")) > 0;
  price.cost = broken.number("optimizer_steps");
  price.unit = "optimizer steps, all of them without effect";
  const Json* losses = broken.first("losses");
  if (losses != nullptr)
    price.seen = "silent: the loss stays at " + figure(losses->back().get<double>(), 4);
  return price;
}

}  // namespace bench::pitfalls
