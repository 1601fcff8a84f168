#include "scenarios/pitfalls/ranks/one_sided.hpp"

#include "scenarios/pitfalls/data/loaders.hpp"
#include "scenarios/pitfalls/frameworks/engines.hpp"
#include "scenarios/pitfalls/frameworks/prepared.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/named_in_code.hpp"
#include "scenarios/pitfalls/program/words.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Api;

namespace {

// All parameters are there already, as all ranks asked for them.
bool holds_all_parameters(const Program& program, Ref node) {
  return static_cast<bool>(program.enclosing_with(
      node, [](Ref item) { return facts::contains(item.text(), "summon_full_params"); }));
}

// Training under Accelerate, in a wrapper of the program's own, or by a Trainer.
std::vector<CallRef> trainings(const Program& program) {
  std::vector<CallRef> out;
  if (program.has_ddp() || accelerate_wraps(program))
    for (const auto& loop : program.training_loops())
      out.insert(out.end(), loop.backwards.begin(), loop.backwards.end());
  for (const CallRef& call : program.calls_named("train"))
    if (call.receiver() && program.comes_from(call.receiver(), Api::hf_trainer))
      out.push_back(call);
  return out;
}

// The item of a `with` around the node or around a call that leads to it.
Ref turn_around(const Program& program, Ref node) {
  constexpr int kCallers = 4;
  for (int depth = 0; depth < kCallers && node; ++depth) {
    const Ref item = program.enclosing_with(node, [](Ref each) {
      return facts::contains(each.text(), "process_first(") ||
             facts::contains(each.text(), "zero_first(");
    });
    if (item) return item;
    const auto function = program.enclosing_function(node);
    const auto& sites = function ? program.call_sites(function) : std::vector<CallRef>{};
    node = sites.size() == 1 ? sites.front().ref() : Ref{};
  }
  return {};
}

}  // namespace

namespace {

// StateDictOptions(full_state_dict=True): whole tensors, which the ranks put together.
bool asks_for_whole_states(const Program& program, const CallRef& call) {
  const auto& sources = program.sources(call.keyword("options"));
  return std::any_of(sources.begin(), sources.end(), [&](const diagnose::Source& source) {
    const CallRef options = program.as_call(source.ref);
    return options && program.is_literal_true(options.keyword("full_state_dict"));
  });
}

}  // namespace

std::vector<CallRef> gathers_of_shards(const Program& program) {
  std::vector<CallRef> out;
  // What kind of states an option names is not known.
  if (shards_nothing(program) || program.mentions("LOCAL_STATE_DICT") ||
      program.mentions("SHARDED_STATE_DICT") ||
      (facts::is_named_in_code(program, "StateDictType") && !program.mentions("FULL_STATE_DICT")))
    return out;
  // An optimizer's states are those of its own shards: it asks nobody.
  const auto is_of_model = [&](Ref object) {
    return !program.comes_from(object, Api::optimizer) &&
           !says_any(object.text(), {"opt", "sched", "scaler"});
  };
  for (const CallRef& call : program.calls_named("state_dict"))
    if (call.receiver() && is_of_model(call.receiver()) &&
        may_be_sharded(program, call.receiver()) && !holds_all_parameters(program, call.ref()))
      out.push_back(call);
  for (const std::string_view name : {"get_model_state_dict", "get_optimizer_state_dict",
                                      "full_optim_state_dict", "optim_state_dict"})
    for (const CallRef& call : program.calls_named(name))
      if (may_be_sharded(program, call.argument(0, "model"))) out.push_back(call);
  for (const CallRef& call : program.calls_named("get_state_dict"))  // of torch's checkpoints
    if (call.keyword("options") && asks_for_whole_states(program, call) &&
        may_be_sharded(program, call.argument(0, "model")))
      out.push_back(call);
  return out;
}

std::vector<CallRef> states_below_shards(const Program& program) {
  std::vector<CallRef> out;
  if (!program.uses(Api::fsdp) || shards_nothing(program)) return out;
  for (const CallRef& call : program.calls_named("state_dict")) {
    const Ref inner = call.receiver();
    if (inner.kind() == diagnose::Kind::attribute &&
        inner.child(diagnose::Field::attribute).text() == "module" &&
        is_sharded(program, inner.child(diagnose::Field::object)) &&
        !holds_all_parameters(program, call.ref()))
      out.push_back(call);
  }
  return out;
}

std::vector<CallRef> barriers_by_name(const Program& program) {
  const auto is_of_communication = [](std::string_view path) {
    return path.ends_with("comm") || facts::contains(path, ".comm.") || path.starts_with("comm.");
  };
  std::vector<CallRef> out;
  for (const CallRef& call : program.calls_named("synchronize")) {
    if (program.callee(call) || call.positional(0)) continue;
    const Ref receiver = call.receiver();
    const auto& imports = call.module->imports();
    const std::string path =
        receiver ? call.module->qualified(receiver.node)
                 : std::string(call.module->import_path(std::string_view("synchronize")));
    const bool is_starred = !receiver && path.empty() && call.module->has_star_imports() &&
                            std::any_of(imports.begin(), imports.end(), is_of_communication);
    if (is_starred || is_of_communication(path)) out.push_back(call);
  }
  return out;
}

std::vector<CallRef> reads_of_shuffled_loaders(const Program& program) {
  std::vector<CallRef> out;
  if (!program.uses(Api::accelerator) || program.mentions("rng_types")) return out;
  for (const CallRef& read : program.calls_named("iter")) {
    const Ref loader = read.positional(0);
    const CallRef prepare = preparation_of_loader(program, loader);
    if (!prepare) continue;
    for (std::size_t i = 0; const Ref given = prepared_by(prepare, i); ++i) {
      if (given.text() != loader.text()) continue;
      for (const CallRef& made : loaders_of(program, given))
        if (program.is_literal_true(made.keyword("shuffle"))) {
          out.push_back(read);
          break;
        }
    }
  }
  return out;
}

std::vector<Ref> turns_around_training(const Program& program) {
  std::vector<Ref> out;
  for (const CallRef& call : trainings(program)) {
    const Ref item = turn_around(program, call.ref());
    if (item && std::find(out.begin(), out.end(), item) == out.end()) out.push_back(item);
  }
  return out;
}

bool is_uncalled_test(const Program& program, Ref condition) {
  if (condition.kind() == diagnose::Kind::not_expression)
    condition = condition.child(diagnose::Field::argument);
  if (condition.kind() != diagnose::Kind::identifier || condition.text() != "is_main_process" ||
      program.sources(condition).size() > 1)
    return false;
  const auto& module = *condition.module;
  const auto& defs = module.defs_of(condition.text(), false);
  return defs.size() == 1 && module.defs()[defs.front()].kind == diagnose::DefKind::import;
}

std::vector<CallRef> training_out_of_sight(const Program& program) {
  std::vector<CallRef> out;
  if (!program.has_ddp() || program.framework_distributes()) return out;
  for (const diagnose::Module* module : program.modules())
    for (const diagnose::Call& made : module->calls()) {
      const CallRef call{module, &made};
      const bool trains = made.name == "train" || made.name.starts_with("train_");
      if (!trains || program.callee(call) || program.class_of_call(call) ||
          !program.innermost_loop(call.ref()))
        continue;
      // train(ddp_model, loader) and trainer.train(epoch), not tokenizer.train(files)
      if (call.positional(0) && call.receiver() && call.receiver().text().ends_with("trainer")) {
        out.push_back(call);
        continue;
      }
      for (std::size_t i = 0; const Ref argument = call.positional(i); ++i)
        if (program.is_wrapped(argument, diagnose::Wrapper::ddp)) {
          out.push_back(call);
          break;
        }
    }
  return out;
}

}  // namespace bench::pitfalls
