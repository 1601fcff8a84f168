#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/frameworks/prepared.hpp"
#include "scenarios/pitfalls/frameworks/trainer.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"
#include "scenarios/pitfalls/ranks/notebook_ranks.hpp"
#include "scenarios/pitfalls/ranks/own_ranks.hpp"
#include "scenarios/pitfalls/reach/unconditional.hpp"

#include <algorithm>
#include <array>
#include <iterator>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Field;
using diagnose::Kind;
using diagnose::LaunchLine;
using diagnose::Module;
using diagnose::NodeId;

namespace {

// os.environ itself, and no copy of it.
bool is_environment(Ref object) {
  return object.text() == "os.environ" || object.module->api(object.node) == diagnose::Api::environ;
}

struct SlowVariable {
  std::string_view name;
  std::string_view value;  // empty: any
  std::string_view effect;
};

constexpr auto kSlowVariables = std::to_array<SlowVariable>({
    {"NCCL_P2P_DISABLE", "1",
     "GPUs exchange data through host memory (a valid workaround where peer-to-peer is broken)"},
    {"NCCL_IB_DISABLE", "1", "NCCL leaves InfiniBand unused"},
    {"NCCL_SHM_DISABLE", "1", "NCCL leaves shared memory unused"},
    {"NCCL_SOCKET_IFNAME", "lo", "NCCL uses the loopback interface, which reaches no other node"},
    {"CUDA_LAUNCH_BLOCKING", "1", "the host waits for every kernel"},
    {"TORCH_DISTRIBUTED_DEBUG", "DETAIL", "every collective is checked across ranks"},
    {"NCCL_DEBUG", "TRACE", "NCCL logs every call"},
});

std::string capitalised(std::string_view text) {
  std::string out(text);
  out[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(out[0])));
  return out;
}

const SlowVariable* slow_variable(std::string_view name, std::string_view value) {
  for (const SlowVariable& each : kSlowVariables)
    if (each.name == name && each.value == value) return &each;
  return nullptr;
}

}  // namespace

namespace {

// Variables that only matter where ranks exchange data.
bool is_of_nccl(std::string_view name) { return name.starts_with("NCCL_"); }

bool is_of_ranks(std::string_view name) {
  return is_of_nccl(name) || name == "TORCH_DISTRIBUTED_DEBUG";
}

// init_process_group("gloo"), and nothing else: NCCL is not asked for anything.
bool joins_by_gloo_alone(const Program& program) {
  const auto joins = program.calls(Api::init_process_group);
  return !joins.empty() && std::all_of(joins.begin(), joins.end(), [&](const CallRef& join) {
    const auto backend = program.evaluate(join.argument(0, "backend"));
    return backend.is_string() && !backend.is_default && backend.string == "gloo";
  });
}

// Variables that only matter between nodes: within one, ranks find each other through any interface
// and exchange data without it.
bool is_of_network(std::string_view name) {
  return name == "NCCL_IB_DISABLE" || name == "NCCL_SOCKET_IFNAME";
}

bool imports_torch_above(Ref node) {
  const auto& tree = node.module->tree();
  for (NodeId id = 0; id < node.node; ++id)
    if ((tree[id].kind == Kind::import_statement || tree[id].kind == Kind::import_from) &&
        facts::contains(tree.text(id), " torch"))
      return true;
  return false;
}

// At the top of a script that starts its ranks in one of its functions: all of them inherit it.
bool above_functions_that_spawn(const Program& program, Ref assignment) {
  const auto spawns = program.calls(Api::spawn);
  return !program.enclosing_function(assignment) &&
         std::any_of(spawns.begin(), spawns.end(), [&](const CallRef& spawn) {
           return spawn.module == assignment.module && program.enclosing_function(spawn.ref());
         });
}

// PyTorch reads TORCH_DISTRIBUTED_DEBUG when it is imported: below that only processes that are
// started later see it, and whoever has set it is not told what was asked for.
bool comes_too_late(const Program& program, std::string_view name, Ref assignment) {
  return name == "TORCH_DISTRIBUTED_DEBUG" && imports_torch_above(assignment) &&
         !program.before_ranks(assignment) && !above_functions_that_spawn(program, assignment) &&
         !facts::only_before_ranks(program, assignment);
}

// Nothing but the script's own `if __name__ == "__main__":` stands around it.
bool is_set_always(const Program& program, Ref node) {
  const auto guards = program.guards(node);
  return std::all_of(guards.begin(), guards.end(), [&](const diagnose::Guard& guard) {
    if (ends_the_run(guard, node)) return true;
    // with set_grad_enabled(train) and set_detect_anomaly(True): the first is an object, and true.
    return guard.holds && (facts::contains(guard.condition.text(), "__name__") ||
                           facts::contains(guard.condition.text(), "set_grad_enabled("));
  });
}

// L.Trainer(strategy=DDPStrategy(...)), Trainer(devices=gpus): Lightning trains on several GPUs.
bool trains_by_lightning(const Program& program) {
  const auto trainers = program.calls(Api::lightning_trainer);
  return !program.calls_named("fit").empty() &&
         std::any_of(trainers.begin(), trainers.end(), [&](const CallRef& trainer) {
           const Ref strategy = program.written(trainer.keyword("strategy"));
           const Ref devices = program.written(trainer.keyword("devices"));
           const std::string_view count = devices.text();
           return (strategy && says_any(strategy.text(), {"ddp", "fsdp", "deepspeed"})) ||
                  (devices && count != "1" && devices.kind() != Kind::list &&
                   program.integer(devices).value_or(2) > 1);
         });
}

// optimizer.step(), trainer.fit(), train(model): neither the step of a metric nor the mode of a
// module, model.train(). What a file out of sight does by such a name may train too.
bool may_train(const Program& program, const CallRef& call) {
  const std::string_view name = call.call->name;
  if (name == "fit" || name == "backward" || facts::contains(name, "Trainer")) return true;
  const Ref object = call.receiver();
  if (name == "step")
    return object && (program.comes_from(object, Api::optimizer) ||
                      program.comes_from(object, Api::scheduler) ||
                      says_any(object.text(), {"opt", "sched", "scaler", "engine", "self"}));
  const Ref given = call.positional(0);
  const bool is_mode =
      object && name == "train" &&
      (!given || given.kind() == Kind::true_literal || given.kind() == Kind::false_literal);
  const bool out_of_sight = !program.callee(call) && !program.class_of_call(call) && !object;
  return (says_any(name, {"train"}) && !is_mode && !says_any(name, {"train_test", "pretrain"})) ||
         (out_of_sight && says_any(name, {"main", "launch", "run", "optimi"}));
}

// with torch.no_grad(), model.eval(): what the script does with its model is in sight.
bool is_for_evaluation(const Program& program) {
  if (program.uses(Api::no_grad)) return true;
  const auto evals = program.calls_named("eval");
  return std::any_of(evals.begin(), evals.end(),
                     [](const CallRef& call) { return call.receiver() && !call.positional(0); });
}

// A script that generates or tests, in one process or in several: there is no training to slow
// down. A pass back anywhere, run or not, means that it trains.
bool only_infers(const Program& program) {
  if (!is_for_evaluation(program) || !program.calls_named("backward").empty() ||
      (program.framework_distributes() && !program.uses(Api::accelerator)))
    return false;
  const auto& modules = program.modules();
  return std::none_of(modules.begin(), modules.end(), [&](const Module* module) {
    return std::any_of(
        module->calls().begin(), module->calls().end(), [&](const diagnose::Call& each) {
          const CallRef call{module, &each};
          return may_train(program, call) && facts::is_reachable(program, call.ref());
        });
  });
}

// RANK=1 WORLD_SIZE=2 python train.py: its peers are started by other lines.
bool is_one_of_several(const LaunchLine& launch) {
  return launch.environment.contains("RANK") || launch.environment.contains("WORLD_SIZE");
}

// --nproc_per_node=1, CUDA_VISIBLE_DEVICES=0: no other rank to exchange data with, or to check.
bool is_of_one_process(const LaunchLine& launch) {
  if (launch.nodes() != 1 || is_one_of_several(launch)) return false;
  return launch.visible_devices() == 1 ||
         (launch.launcher != diagnose::Launcher::python && launch.processes_per_node() == 1);
}

// if args.eval: evaluate(...); return, without a pass back: the script trains nothing then.
bool has_branch_of_evaluation(const Program& program, std::string_view option) {
  for (const Module* module : program.modules())
    for (const NodeId node : module->nodes_of(Kind::if_statement)) {
      const Ref branch{module, node};
      const Ref body = branch.child(Field::consequence);
      const Ref asks = branch.child(Field::condition);
      if (!body || asks.kind() != Kind::attribute || asks.child(Field::attribute).text() != option)
        continue;
      const auto& tree = module->tree();
      const std::size_t count = tree.child_count(body.node);
      const Ref last = count > 0 ? body.with(tree.child_at(body.node, count - 1)) : Ref{};
      const bool leaves =
          last && (last.kind() == Kind::return_statement || facts::ends_process(last));
      if (leaves && !program.subtree_calls(
                        body, [](const CallRef& call) { return call.call->name == "backward"; }))
        return true;
    }
  return false;
}

// train.py --eval, and not --eval False: the line tests what another one has trained.
bool only_evaluates(const Program& program, const LaunchLine& launch) {
  const auto& words = launch.script_arguments;
  for (std::size_t i = 0; i < words.size(); ++i) {
    std::string name = words[i].text;
    std::replace(name.begin(), name.end(), '-', '_');
    if (name != "__eval" && name != "__evaluate" && name != "__eval_only" &&
        name != "__only_eval" && name != "__test_only" && name != "__evaluate_only")
      continue;
    const std::string value = i + 1 < words.size() ? facts::lowered(words[i + 1].text) : "";
    if (value != "false" && value != "0" && value != "no" && value != "off" && value != "none" &&
        has_branch_of_evaluation(program, std::string_view(name).substr(2)))
      return true;
  }
  return false;
}

// A pass back, and neither a loop of them nor something that trains: a map of the gradients for one
// input, where nothing is slowed down.
bool trains_nothing(const Program& program) {
  if (!program.training_loops().empty() || program.uses(Api::optimizer) ||
      program.framework_distributes() || program.calls_named("backward").empty())
    return false;
  for (const char* trains : {"step", "fit", "Trainer"})
    if (!program.calls_named(trains).empty()) return false;
  const auto trains = program.calls_named("train");
  return std::none_of(trains.begin(), trains.end(),
                      [](const CallRef& call) { return static_cast<bool>(call.positional(0)); });
}

// # works around a deadlock: the comment beside it, or alone on the line above, says why a part of
// NCCL is switched off.
bool is_explained(std::string_view name, Ref assignment) {
  if (!is_of_nccl(name)) return false;
  const auto& tree = assignment.module->tree();
  const std::string_view source = tree.source();
  const std::uint32_t end = tree[assignment.node].end;
  const auto& comments = tree.comments();  // in source order
  const auto comment = std::partition_point(comments.begin(), comments.end(),
                                            [&](const auto& each) { return each.begin < end; });
  const auto tells = [&](const auto& each) {
    return diagnose::tells_why(source.substr(each.begin, each.end - each.begin));
  };
  if (comment != comments.end() &&
      source.substr(end, comment->begin - end).find_first_not_of(" \t,)}") ==
          std::string_view::npos)
    return tells(*comment);
  if (comment == comments.begin()) return false;
  const auto above = std::prev(comment);
  const std::uint32_t begin = tree[assignment.node].begin;
  if (above->end > begin) return false;
  const std::string_view between = source.substr(above->end, begin - above->end);
  const std::size_t line = source.find_last_of('\n', above->begin) + 1;  // 0 for the first
  return between.find_first_not_of(" \t\r\n") == std::string_view::npos &&
         std::count(between.begin(), between.end(), '\n') == 1 &&
         source.substr(line, above->begin - line).find_first_not_of(" \t") ==
             std::string_view::npos &&
         tells(*above);
}

// CUDA_LAUNCH_BLOCKING=1 beside torch.use_deterministic_algorithms(True), in one function or both
// at the file's own level: wanted for runs that repeat exactly, as the notes on LSTMs advise.
bool is_for_determinism(const Program& program, std::string_view name, Ref assignment) {
  const auto asks = program.calls_named("use_deterministic_algorithms");
  return name == "CUDA_LAUNCH_BLOCKING" &&
         std::any_of(asks.begin(), asks.end(), [&](const CallRef& call) {
           return call.module == assignment.module &&
                  !program.is_literal_false(call.positional(0)) &&
                  program.enclosing_function(call.ref()) == program.enclosing_function(assignment);
         });
}

// Trainer(detect_anomaly=True), where it trains on several GPUs.
void check_trainers_that_detect(const Program& program, Report& report) {
  if (program.calls_named("fit").empty() ||
      !(has_lightning_ranks(program) || trains_by_lightning(program)))
    return;
  for (const trainer::Use& use : trainer::uses(program)) {
    const trainer::Argument* detects = use.find("detect_anomaly");
    if (!use.call || detects == nullptr || !detects->value.is_true() || detects->value.is_default ||
        use.find("fast_dev_run") || !facts::is_reachable(program, use.call.ref()))
      continue;
    trainer::flag(report, *detects, Confidence::likely,
                  "anomaly detection is left on: every backward pass records its stack and checks "
                  "for NaN")
        .help = "Remove it after debugging.";
  }
}

// os.environ.update({"TORCH_DISTRIBUTED_DEBUG": "DETAIL"})
void check_updates(const Program& program, bool no_nccl, Report& report) {
  for (const CallRef& call : program.calls_named("update")) {
    const Ref items = call.positional(0);
    if (!call.receiver() || !is_environment(call.receiver()) || !items ||
        items.kind() != Kind::dictionary || only_infers(program) ||
        !is_set_always(program, call.ref()) || !facts::is_reachable(program, call.ref()))
      continue;
    const auto& tree = items.module->tree();
    for (NodeId at = tree[items.node].first_child; at != diagnose::kNoNode;
         at = tree[at].next_sibling) {
      if (tree[at].kind != Kind::pair) continue;
      const Ref pair = items.with(at);
      const auto name = program.string(pair.child(Field::key));
      const auto value = program.string(pair.child(Field::value));
      const SlowVariable* variable = name && value ? slow_variable(*name, *value) : nullptr;
      if (variable == nullptr || (no_nccl && is_of_nccl(*name)) ||
          (is_of_network(*name) && facts::is_single_node(program)) || is_explained(*name, pair) ||
          comes_too_late(program, *name, pair))
        continue;
      report.at(pair, Confidence::likely, *name + "=" + *value + " slows training down").help =
          capitalised(variable->effect) + ": remove it after debugging.";
    }
  }
}

// os.environ.setdefault("TORCH_DISTRIBUTED_DEBUG", "DETAIL"); a default that switches a part of
// NCCL off is a workaround for those who need no other.
void check_defaults(const Program& program, Report& report) {
  for (const CallRef& call : program.calls_named("setdefault")) {
    if (!call.receiver() || !is_environment(call.receiver())) continue;
    const auto name = program.string(call.positional(0));
    const auto value = program.string(call.positional(1));
    const SlowVariable* variable = name && value ? slow_variable(*name, *value) : nullptr;
    if (variable == nullptr || is_of_nccl(*name) || comes_too_late(program, *name, call.ref()) ||
        only_infers(program) || !is_set_always(program, call.ref()) ||
        !facts::is_reachable(program, call.ref()))
      continue;
    report.at(call.ref(), Confidence::likely, *name + "=" + *value + " slows training down").help =
        capitalised(variable->effect) + ": remove it after debugging.";
  }
}

}  // namespace

namespace {

void explain(Finding& finding, const SlowVariable& variable) {
  finding.help = capitalised(variable.effect) + ": remove it after debugging.";
}

// Whoever names the network to use has left InfiniBand out on purpose.
bool is_on_purpose(const LaunchLine& launch, std::string_view name) {
  const auto interface = launch.environment.find("NCCL_SOCKET_IFNAME");
  return name == "NCCL_IB_DISABLE" &&
         (launch.environment.contains("NCCL_NET") ||
          (interface != launch.environment.end() && interface->second.text != "lo"));
}

// python infer_speed.py: a script that is named for what trains nothing.
bool is_named_for_inference(const LaunchLine& launch) {
  const auto words = words_of_name(launch.script_name());
  const auto is_one_of = [&](std::initializer_list<std::string_view> names) {
    return std::any_of(words.begin(), words.end(), [&](const std::string& word) {
      return std::find(names.begin(), names.end(), word) != names.end();
    });
  };
  return is_one_of({"infer", "inference", "predict", "demo", "eval", "evaluate", "test", "speed",
                    "generate", "generation"}) &&
         !is_one_of({"train", "training", "finetune", "tune", "pretrain", "main", "run"});
}

// What Accelerate and Hugging Face's Trainer refuse to start without on RTX 40 cards, which its
// launcher sets by itself (accelerate.state, "Using RTX 4000 series doesn't support ...").
bool is_pair_for_consumer_cards(const LaunchLine& launch, std::string_view name) {
  const auto is_off = [&](const char* part) {
    const auto set = launch.environment.find(part);
    return set != launch.environment.end() && set->second.text == "1";
  };
  return launch.launcher == diagnose::Launcher::accelerate && launch.nodes() == 1 &&
         (name == "NCCL_P2P_DISABLE" || name == "NCCL_IB_DISABLE") && is_off("NCCL_P2P_DISABLE") &&
         is_off("NCCL_IB_DISABLE");
}

bool matters_in_line(const Program& program, const LaunchLine& launch, std::string_view name,
                     bool no_nccl) {
  return !is_on_purpose(launch, name) && !only_evaluates(program, launch) &&
         !is_named_for_inference(launch) && !is_pair_for_consumer_cards(launch, name) &&
         !(no_nccl && is_of_nccl(name)) && !(is_of_one_process(launch) && is_of_ranks(name)) &&
         !(launch.nodes() == 1 && is_of_network(name));
}

void check_launch_lines(const Program& program, bool no_nccl, Report& report) {
  for (const LaunchLine& launch : program.launches())
    for (const auto& [name, word] : launch.environment) {
      if (!word.literal || (word.is_explained && is_of_nccl(name)) ||
          !matters_in_line(program, launch, name, no_nccl))
        continue;
      if (const SlowVariable* variable = slow_variable(name, word.text))
        explain(report.at_word(launch.file, word, Confidence::likely,
                               name + "=" + word.text + " slows training down"),
                *variable);
    }
}

}  // namespace

void check_performance_environment_left_on(const Program& program, Report& report) {
  const auto& launches = program.launches();
  const bool one_gpu =
      facts::visible_gpus(program) == 1 &&
      std::all_of(launches.begin(), launches.end(), [](const LaunchLine& launch) {
        return launch.visible_devices().value_or(1) == 1 && !is_one_of_several(launch);
      });
  const bool no_nccl = one_gpu || joins_by_gloo_alone(program);
  check_launch_lines(program, no_nccl, report);
  for (const Module* module : program.modules())
    for (const NodeId node : module->nodes_of(Kind::assignment)) {
      const Ref assignment{module, node};
      const Ref target = assignment.child(Field::left);
      if (target.kind() != Kind::subscript) continue;
      const std::string name = program.environment_name(target);
      const auto value =
          name.empty() ? std::nullopt : program.string(assignment.child(Field::right));
      const SlowVariable* variable = value ? slow_variable(name, *value) : nullptr;
      if (variable != nullptr && !(no_nccl && is_of_nccl(name)) &&
          !(is_of_network(name) && facts::is_single_node(program)) && !only_infers(program) &&
          !is_explained(name, assignment) && !is_for_determinism(program, name, assignment) &&
          is_set_always(program, assignment) && facts::is_reachable(program, assignment)) {
        const bool is_late = comes_too_late(program, name, assignment);
        Finding& finding = report.at(
            assignment, Confidence::likely,
            name + "=" + *value +
                (is_late ? " is left on: PyTorch, imported above, has read it already, and only "
                           "what is started below sees it"
                         : " slows training down"));
        explain(finding, *variable);
        if (is_late) finding.severity = Severity::info;
      }
    }
  check_updates(program, no_nccl, report);
  check_defaults(program, report);
  check_trainers_that_detect(program, report);
  for (const CallRef& call : program.calls(Api::detect_anomaly)) {
    const Ref mode = call.positional(0);
    if (call.call->name == "set_detect_anomaly" && !program.is_literal_true(mode)) continue;
    if (!facts::is_reachable(program, call.ref()) || !is_set_always(program, call.ref()) ||
        trains_nothing(program) || facts::is_notebook_of_one_process(program) ||
        (program.wraps().empty() && !program.uses(Api::hvd_optimizer) &&
         !trains_by_lightning(program) && !accelerate_wraps(program) &&
         !(program.uses(Api::hf_trainer) && !program.calls_named("train").empty())))
      continue;
    report
        .at(call.ref(), Confidence::likely,
            "anomaly detection is left on: every backward pass records its stack and checks for "
            "NaN")
        .help = "Remove it after debugging.";
  }
}

}  // namespace bench::pitfalls
