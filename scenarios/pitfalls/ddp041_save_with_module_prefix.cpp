#include "diagnose/model/made_at.hpp"
#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/files/readers_elsewhere.hpp"
#include "scenarios/pitfalls/files/restored.hpp"
#include "scenarios/pitfalls/files/saved_states.hpp"
#include "scenarios/pitfalls/files/state_keys.hpp"
#include "scenarios/pitfalls/frameworks/engine_states.hpp"
#include "scenarios/pitfalls/frameworks/prepared.hpp"
#include "scenarios/pitfalls/judges.hpp"
#include "scenarios/pitfalls/laboratory/trial_prices.hpp"
#include "scenarios/pitfalls/program/argument_for.hpp"
#include "scenarios/pitfalls/program/edits.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"
#include "scenarios/pitfalls/reach/opposite_runs.hpp"
#include "scenarios/pitfalls/reach/order.hpp"
#include "scenarios/pitfalls/wrappers/bare_states.hpp"
#include "scenarios/pitfalls/wrappers/empty_modules.hpp"
#include "scenarios/pitfalls/wrappers/other_kind_asked.hpp"
#include "scenarios/pitfalls/wrappers/own_wrappers.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Field;
using diagnose::Kind;
using diagnose::NodeId;
using diagnose::Source;
using diagnose::Wrap;

namespace {

bool handles_prefix(const Program& program) {
  return changes_keys(program) || program.mentions("unwrap_model") ||
         is_mended_out_of_sight(program);
}

// if several: save(accelerator.unwrap_model(model)) else: save(model): the run of one process.
bool is_beside_unwrapping(const Program& program, Ref state) {
  const auto unwraps = program.calls_named("unwrap_model");
  return std::any_of(unwraps.begin(), unwraps.end(),
                     [&](const CallRef& unwrap) { return facts::exclusive(state, unwrap.ref()); });
}

bool restores_by_name(std::string_view name) {
  return says_any(name, {"checkpoint", "ckpt"}) &&
         says_any(name, {"load", "restore", "resume", "restart"});
}

// load_checkpoint(path, model, optimizer) of a file that is not at hand.
bool restores_elsewhere(const Program& program, const CallRef& call) {
  return restores_by_name(call.call->name) && !program.callee(call);
}

// copy_state_dict(checkpoint["model"], model): a function of the project's own that restores.
bool hands_wrapper_to_loader(const Program& program) {
  const auto may_restore = [](std::string_view name) {
    return name != "load_state_dict" &&
           (restores_by_name(name) || facts::contains(name, "_state_dict"));
  };
  for (const CallRef& call : program.calls_that(may_restore)) {
    const bool elsewhere = restores_elsewhere(program, call);
    if (!elsewhere && !facts::contains(call.call->name, "_state_dict")) continue;
    for (const Ref argument : facts::arguments_of(call)) {
      const Wrap* wrap = program.wrap_of(argument);
      if (wrap == nullptr) continue;
      // Above the wrapper the name still holds the bare model.
      if (!elsewhere || !only_runs_before(program, call.ref(), wrap->call.ref())) return true;
    }
  }
  return false;
}

// model.state_dict()[name].copy_(value) of the wrapper, name by name.
bool copies_into_wrapper(const Program& program) {
  for (const CallRef& copy : program.calls_named("copy_")) {
    const Ref entry = copy.receiver();
    if (entry.kind() != Kind::subscript) continue;
    for (const Source& source : program.sources(entry.child(Field::value))) {
      const CallRef state = program.as_call(source.ref);
      if (!state || state.call->name != "state_dict" || !state.receiver()) continue;
      const Wrap* wrap = program.wrap_of(state.receiver());
      if (wrap != nullptr && !only_runs_before(program, state.ref(), wrap->call.ref())) return true;
    }
  }
  return false;
}

// best = copy.deepcopy(model.state_dict()), and model.load_state_dict(best) at the end: no file.
// Key by key it is the same: {k: v.cpu() for k, v in model.state_dict().items()}.
bool is_kept_in_memory(const Program& program, Ref state) {
  auto sources = program.sources(state);
  std::erase_if(sources,
                [](const Source& source) { return source.ref.kind() == Kind::none_literal; });
  return !sources.empty() && std::all_of(sources.begin(), sources.end(), [&](const Source& source) {
    if (source.how != Source::How::value) return false;
    if (source.ref.kind() == Kind::comprehension)
      return facts::contains(source.ref.text(), ".state_dict().items()");
    CallRef call = program.as_call(source.ref);
    if (call && call.call->name == "deepcopy" && call.positional(0))
      call = program.made_by(call.positional(0));
    return call && call.call->name == "state_dict" && call.receiver();
  });
}

// The checkpoint goes back into a wrapper of this program, so prefixes agree.
bool loads_into_wrapper(const Program& program) {
  for (const CallRef& load : program.calls_named("load_state_dict")) {
    const Ref object = load.receiver();
    if (!object || facts::contains(object.text(), ".module") ||
        facts::only_without_distribution(program, load.ref()) ||
        is_kept_in_memory(program, load.positional(0)) ||
        is_of_other_files(program, load.positional(0)))
      continue;
    if (const Wrap* wrap = program.wrap_of(object);
        wrap != nullptr && !only_runs_before(program, load.ref(), wrap->call.ref()))
      return true;
    if (says_any(diagnose::last_word(object), {"sched", "optim", "scaler"})) continue;
    // A helper that restores what it is given: objects[key].load_state_dict(...).
    const auto& sources = program.sources(object);
    if (object.kind() == diagnose::Kind::identifier && sources.size() == 1 &&
        (sources.front().how == Source::How::loop_item ||
         sources.front().how == Source::How::element))
      return true;
  }
  return copies_into_wrapper(program) || hands_wrapper_to_loader(program);
}

// Every state that the program restores is an item of a checkpoint: states["model"]. A file that
// holds nothing but a state, as the final model does, is none of those.
bool restores_items_alone(const Program& program) {
  if (copies_into_wrapper(program) || hands_wrapper_to_loader(program)) return false;
  const auto loads = program.calls_named("load_state_dict");
  return std::all_of(loads.begin(), loads.end(), [](const CallRef& load) {
    return load.positional(0).kind() == Kind::subscript;
  });
}

// torch.save(model.state_dict(), path)
bool is_saved_whole(const Program& program, const CallRef& save, const CallRef& state) {
  const CallRef saved = program.as_call(save.argument(0, "obj"));
  return save.call->api == Api::torch_save && saved && saved.call == state.call;
}

// raw = model.module if distributed else model: the program looks below a wrapper of its own.
std::vector<Ref> modules_taken(const Program& program) {
  std::vector<Ref> out;
  for (const diagnose::Module* module : program.modules())
    for (NodeId node = 0; node < module->tree().size(); ++node) {
      const Ref attribute{module, node};
      if (attribute.kind() == Kind::attribute &&
          attribute.child(Field::attribute).text() == "module" &&
          program.wrap_of(attribute.child(Field::object)) != nullptr)
        out.push_back(attribute);
    }
  return out;
}

// model.module if hasattr(model, "module") else model: wrapped and bare models come here alike, so
// the branch that it stands in is not that of the runs that wrap. Beside the other part of such a
// choice it is.
bool asks_whether_wrapped(Ref state, Ref attribute) {
  const auto& tree = attribute.module->tree();
  const NodeId choice = tree.ancestor(attribute.node, Kind::conditional);
  if (choice == diagnose::kNoNode || tree.contains(choice, state.node)) return false;
  const std::string_view condition = tree.text(tree.child_at(choice, 1));
  return facts::contains(condition, "hasattr(") || facts::contains(condition, "isinstance(");
}

// One branch saves what is below the wrapper, another one the wrapper, and which is taken says
// whether there is one.
bool is_beside(Ref state, Ref attribute) {
  return facts::exclusive(state, attribute) && !asks_whether_wrapped(state, attribute);
}

// The wrapper in the runs that make one, and nothing else there: no name that may hold
// model.module, no branch of the runs that do not wrap, none beside one that saves what is below.
bool is_wrapped_in_some_runs(const Program& program, const CallRef& state) {
  const Ref object = state.receiver();
  if (program.wrap_of(object) == nullptr || facts::only_without_distribution(program, state.ref()))
    return false;
  for (const Source& source : program.module_sources(object))
    if (source.ref.text().ends_with(".module")) return false;
  const auto guards = program.guards(state.ref());
  if (std::any_of(guards.begin(), guards.end(), [](const diagnose::Guard& guard) {
        return facts::contains(guard.condition.text(), "module") ||
               facts::contains(guard.condition.text(), "isinstance");
      }))
    return false;
  const auto taken = modules_taken(program);
  return std::none_of(taken.begin(), taken.end(), [&](Ref attribute) {
    return is_beside(state.ref(), attribute) ||
           (object.kind() == Kind::identifier && program.assigned_name(attribute) == object.text());
  });
}

// if args.multi_gpu: save(model.module.state_dict()) else: save(model.state_dict()): the branch for
// the runs that do not wrap.
bool is_saved_below_otherwise(const Program& program, const CallRef& state) {
  const auto taken = modules_taken(program);
  return std::any_of(taken.begin(), taken.end(), [&](Ref attribute) {
    return attribute.child(Field::object).text() == state.receiver().text() &&
           is_beside(state.ref(), attribute);
  });
}

// save() is called in the branch of the runs that do not wrap, by whatever name they are known.
bool is_of_runs_without(const Program& program, const CallRef& state) {
  const Wrap* wrap = program.wrap_of(state.receiver());
  return wrap != nullptr &&
         only_in_runs_without(program, state.ref(), diagnose::made_at(program, wrap->call).ref());
}

// torch.quantization.convert(model): a copy, unless it is asked for the model itself.
bool converts_a_copy(const Program& program, const CallRef& call) {
  const Ref inplace = call.argument(2, "inplace");
  return call.call->name == "convert" &&
         (!inplace || program.written(inplace).kind() == Kind::false_literal) &&
         facts::contains(call.call->path, "quantization");
}

// One statement directly below or above the other.
bool is_next_to(const CallRef& save, const CallRef& other) {
  const auto& tree = save.module->tree();
  const NodeId here = statement_of(save.ref()).node;
  const NodeId there = statement_of(other.ref()).node;
  return tree[here].next_sibling == there || tree[there].next_sibling == here;
}

// torch.save(net.state_dict(), "net.pt") in the next line, where wrapped = DataParallel(net): a
// file for either.
bool saves_inner_beside(const Program& program, const CallRef& save, const Wrap& wrap) {
  if (wrap.module.kind() != Kind::identifier ||
      program.assigned_name(wrap.call.ref()) == wrap.module.text())
    return false;
  for (const CallRef& other : calls_that_save(program)) {
    if (other.module != save.module || other.call == save.call || !is_next_to(save, other) ||
        !only_runs_before(program, wrap.call.ref(), other.ref()))
      continue;
    for (const CallRef& state : calls_saved(program, other))
      if (state.call->name == "state_dict" && state.receiver() &&
          program.same_variable(state.receiver(), wrap.module))
        return true;
  }
  return false;
}

// ema = copy.deepcopy(ddp_model), made below the wrapper: a wrapper too.
bool is_copy_of_wrapper(const Program& program, Ref object) {
  const auto& sources = program.sources(object);
  return !sources.empty() && std::all_of(sources.begin(), sources.end(), [&](const Source& source) {
    const CallRef copy = program.as_call(source.ref);
    if (!copy || (copy.call->name != "deepcopy" && !converts_a_copy(program, copy))) return false;
    Ref copied = copy.positional(0);
    if (const CallRef mode = program.as_call(copied); mode && mode.call->name == "eval")
      copied = mode.receiver();
    const Wrap* wrap = copied ? program.wrap_of(copied) : nullptr;
    return wrap != nullptr && facts::is_surely_wrapped(program, copied) &&
           only_runs_before(program, wrap->call.ref(), copy.ref());
  });
}

bool is_restored_after(const Program& program, Ref object, const CallRef& prepare) {
  for (const CallRef& load : program.calls_named("load_state_dict"))
    if (load.receiver() && load.receiver().text() == object.text() &&
        !only_runs_before(program, load.ref(), prepare.ref()))
      return true;
  return false;
}

bool is_surely_prepared(const Program& program, Ref object) {
  CallRef prepare = preparation_of_model(program, object);
  if (!prepare) prepare = preparation_of_wrapper(program, object);
  return prepare && !is_restored_after(program, object, prepare);
}

void check_prepared_saves(const Program& program, Readers& readers, Report& report) {
  for (const CallRef& save : calls_that_save(program))
    for (const CallRef& state : calls_saved(program, save)) {
      if (state.call->name != "state_dict" || !state.receiver() ||
          !is_surely_prepared(program, state.receiver()) ||
          is_beside_unwrapping(program, state.ref()))
        continue;
      Finding& finding = report.at(
          state.ref(), Confidence::likely,
          "accelerator.prepare() has wrapped this model: on several GPUs its keys begin with "
          "'module.', and a bare model finds missing and unexpected keys");
      finding.help = "Save accelerator.unwrap_model(" + std::string(state.receiver().text()) +
                     ").state_dict().";
      readers.soften(finding);
      break;
    }
}

// {key.replace("module.", ""): value for ...} and own[key[7:]] = value.
bool takes_prefix_off(const Program& program, Ref state) {
  const auto takes_off = [](std::string_view text) {
    for (const std::string_view form :
         {".replace('module.', '')", ".replace(\"module.\", \"\")", ".replace('module.','')",
          ".replace(\"module.\",\"\")", ".removeprefix('module.')", ".removeprefix(\"module.\")",
          "[7:]"})
      if (facts::contains(text, form)) return true;
    return false;
  };
  const auto& sources = program.sources(state);
  if (std::any_of(sources.begin(), sources.end(), [&](const Source& source) {
        return source.ref.kind() == Kind::comprehension && takes_off(source.ref.text());
      }))
    return true;
  const auto& items = state.module->item_defs_of(state.text());
  return !items.empty() && std::all_of(items.begin(), items.end(), [&](std::uint32_t index) {
    return takes_off(state.module->text(state.module->defs()[index].target));
  });
}

// model = DataParallel(model), and model.load_state_dict(checkpoint["model"]) below it.
void check_bare_state_into_wrapper(const Program& program, Report& report) {
  for (const CallRef& load : loads_of_bare_states(program))
    in_no_trial(
        report.at(
            load.ref(), Confidence::likely,
            "the checkpoint holds model.module.state_dict(), and the wrapper looks for keys that "
            "begin with 'module.': it finds missing and unexpected keys"))
        .help =
        "Load into " + std::string(load.receiver().text()) + ".module, or before it is wrapped.";
}

// if not isinstance(model, DataParallel): around the node, and the else of `isinstance`: wrapped
// models take the other branch.
bool asks_for_bare(const Program& program, Ref node, Ref object) {
  const std::string asks = "isinstance(" + std::string(object.text()) + ",";
  const auto guards = program.guards(node);
  return std::any_of(guards.begin(), guards.end(), [&](const diagnose::Guard& guard) {
    const bool negated = guard.condition.kind() == Kind::not_expression;
    const std::string_view text = guard.condition.text();
    return guard.holds == negated && guard.condition.kind() != Kind::boolean &&
           facts::contains(text, asks) && facts::contains(text, "Parallel");
  });
}

// The other way round: what is restored into the wrapper has lost the prefix that it looks for.
void check_bare_keys_into_wrapper(const Program& program, Report& report) {
  for (const CallRef& load : program.calls_named("load_state_dict")) {
    const Ref object = load.receiver();
    const Ref state = load.positional(0);
    if (!object || !state || !facts::is_surely_wrapped(program, object) ||
        load.module->tree().ancestor(load.call->node, Kind::try_statement) != diagnose::kNoNode ||
        asks_for_bare(program, load.ref(), object))
      continue;
    const Wrap* wrap = program.wrap_of(object);
    if (wrap == nullptr || !only_runs_before(program, wrap->call.ref(), load.ref()) ||
        !takes_prefix_off(program, state))
      continue;
    in_no_trial(
        report.at(
            load.ref(), Confidence::likely,
            "'module.' is taken off the keys here, and those of the wrapper begin with it: it "
            "finds missing and unexpected keys"))
        .help = "Load into " + std::string(object.text()) + ".module.";
  }
}

// model.module.state_dict() if isinstance(model, nn.DataParallel) else model.state_dict()
void check_other_kind_asked(const Program& program, Report& report) {
  for (const CallRef& save : calls_that_save(program))
    for (const CallRef& state : calls_saved(program, save))
      if (state.call->name == "state_dict" && state.receiver() &&
          is_asked_for_other_kind(program, state.ref(), state.receiver())) {
        report
            .at(state.ref(), Confidence::likely,
                "DistributedDataParallel is no DataParallel, so this branch is taken, and the "
                "wrapper's state_dict has 'module.' before every key")
            .help = "Ask for DistributedDataParallel, or save model.module.state_dict().";
        return;
      }
}

void check_engine_states(const Program& program, Report& report) {
  if (changes_keys(program)) return;
  for (const CallRef& state : saves_of_engines(program)) {
    const std::string engine(state.receiver().text());
    report
        .at(state.ref(), Confidence::likely,
            "DeepSpeed's engine has 'module.' before every key of its state: a bare model finds "
            "missing and unexpected keys")
        .help =
        "Save " + engine + ".module.state_dict(), or call " + engine + ".save_checkpoint().";
  }
}

}  // namespace

void check_save_with_module_prefix(const Program& program, Report& report) {
  check_engine_states(program, report);
  check_bare_keys_into_wrapper(program, report);
  check_bare_state_into_wrapper(program, report);
  if (!changes_keys(program)) check_other_kind_asked(program, report);
  Readers readers(program);
  if (!wraps_by_itself(program) && !changes_keys(program))
    check_prepared_saves(program, readers, report);
  if (program.wraps().empty() || handles_prefix(program)) return;
  const bool is_loaded = loads_into_wrapper(program);
  if (is_loaded && !restores_items_alone(program)) return;
  for (const CallRef& save : calls_that_save(program)) {
    for (const CallRef& state : calls_saved(program, save)) {
      if (state.call->name != "state_dict" || !state.receiver() ||
          (is_loaded && !is_saved_whole(program, save, state)))
        continue;
      // def state_dict(self): return self.module.state_dict() of the program's own wrapper.
      const Wrap* wrap = program.wrap_of(state.receiver());
      if (wrap != nullptr &&
          (defines(program, *wrap, "state_dict") || has_no_state(program, *wrap) ||
           saves_inner_beside(program, save, *wrap)))
        continue;
      // Where only some runs wrap, the keys are not even the same in all of them.
      const bool always = facts::is_surely_wrapped(program, state.receiver()) ||
                          is_copy_of_wrapper(program, state.receiver());
      if ((!always && !is_wrapped_in_some_runs(program, state)) ||
          is_saved_below_otherwise(program, state) || is_of_runs_without(program, state))
        continue;
      Finding& finding = report.at(
          state.ref(), Confidence::likely,
          "the wrapper's state_dict has 'module.' before every key: a bare model finds missing and "
          "unexpected keys");
      finding.help = always ? "Save model.module.state_dict()."
                            : "Save model.module.state_dict() in the runs that wrap the model.";
      const bool fails_itself = restores_bare_itself(program, save);
      if (!fails_itself && is_loaded_beside(program))
        tell_as_note(finding, "a script beside this one wraps its model too, and loads");
      else if (!fails_itself)
        readers.soften(finding);
      // Whoever reads the file elsewhere goes by the keys that it has.
      if (finding.severity == Severity::info || is_loaded_into_wrapper_elsewhere(program)) break;
      const std::string receiver(state.receiver().text());
      const std::string below = receiver + ".module";
      replace(
          state.receiver(),
          always ? below
                 : "(" + below + " if hasattr(" + receiver + ", \"module\") else " + receiver + ")",
          "Save the wrapped model", finding);
      break;
    }
  }
}

namespace {

// The file's names are the model's behind one or more "module.".
bool has_module_prefix(const RunEvidence& run) {
  const Json* saved = run.first("saved_keys");
  const Json* wanted = run.first("wanted_keys");
  if (saved == nullptr || wanted == nullptr || saved->empty() || saved->size() != wanted->size())
    return false;
  return saved->front() == "module." + wanted->front().get<std::string>();
}

}  // namespace

void judge_save_with_module_prefix(const RunEvidence& run, RunReport& report) {
  if (!has_module_prefix(run)) return;
  Finding& finding =
      report.add(Confidence::certain,
                 "the checkpoint's names begin with \"module.\" and the model's do not: " +
                     figure(run.number("keys_loaded")) + " of " +
                     std::to_string(run.first("wanted_keys")->size()) + " parameters were loaded");
  finding.help = "Save model.module.state_dict().";
  finding.evidence.emplace_back("names in the file", listed(*run.first("saved_keys")));
}

Price price_save_with_module_prefix(const RunEvidence& broken, const RunEvidence& cured) {
  Price price;
  const std::string error = broken.error_with("No such serialized");
  const double trained = broken.number("trained_accuracy");
  const double loaded = broken.number("loaded_accuracy");
  price.reproduced = broken.number("keys_loaded") == 0 && loaded < trained;
  price.gone = cured.number("keys_loaded") > 0 &&
               cured.number("loaded_accuracy") == cured.number("trained_accuracy");
  price.cost = 100 * (trained - loaded);
  price.unit = "accuracy points lost: nothing of the checkpoint is in the model";
  price.seen = error.empty() ? "silent: accuracy " + figure(100 * loaded) + " % after loading, " +
                                   figure(100 * trained) + " % when it was saved"
                             : first_sentence(error);
  return price;
}

}  // namespace bench::pitfalls
