#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/ranks/env_rendezvous.hpp"
#include "scenarios/pitfalls/ranks/group_of_some_runs.hpp"
#include "scenarios/pitfalls/ranks/spawned_code.hpp"
#include "scenarios/pitfalls/reach/as_launched.hpp"
#include "scenarios/pitfalls/reach/certainty.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Field;
using diagnose::Kind;
using diagnose::kNoNode;
using diagnose::Launcher;
using diagnose::LaunchLine;
using diagnose::Module;
using diagnose::Source;

namespace {

// What torchrun gives to each of the processes that it starts.
bool is_given_by_torchrun(std::string_view variable) {
  for (const char* each : {"RANK", "LOCAL_RANK", "WORLD_SIZE", "TORCHELASTIC_RUN_ID"})
    if (variable == each) return true;
  return false;
}

// args.local_rank = int(os.environ.get("LOCAL_RANK", args.local_rank)): torchrun sets it.
bool reads_local_rank(const Program& program, Ref number) {
  const auto& sources = program.sources(number);
  return program.environment_name(number) == "LOCAL_RANK" ||
         std::any_of(sources.begin(), sources.end(), [&](const Source& source) {
           return program.environment_name(source.ref) == "LOCAL_RANK";
         });
}

// os.environ.get("RANK"), or a name for it: neither None nor empty in what torchrun started.
bool is_text_of_torchrun(const Program& program, Ref value) {
  const auto& sources = program.sources(value);
  const Ref read = sources.size() == 1 ? sources.front().ref : value;
  const CallRef call = program.as_call(read);
  return !(call && call.call->name == "int") &&
         is_given_by_torchrun(program.environment_name(read));
}

// The text of such a variable, and dist.is_torchelastic_launched().
bool is_true_under_torchrun(const Program& program, Ref condition) {
  const CallRef call = program.as_call(condition);
  return (call && call.call->name == "is_torchelastic_launched") ||
         is_text_of_torchrun(program, condition);
}

// "LOCAL_RANK" not in os.environ, os.environ.get("RANK") is None, local_rank == -1: not in a
// process that torchrun started.
bool fails_under_torchrun(const Program& program, Ref condition, bool holds) {
  const auto& tree = condition.module->tree();
  const diagnose::Op op = tree[condition.node].op;
  if (condition.kind() == Kind::not_expression)
    return fails_under_torchrun(program, condition.child(Field::argument), !holds);
  if (condition.kind() == Kind::boolean) {
    const bool left = fails_under_torchrun(program, condition.child(Field::left), holds);
    const bool right = fails_under_torchrun(program, condition.child(Field::right), holds);
    // One of the parts of an `and` that holds, and all of one that does not.
    return (op == diagnose::Op::logical_and) == holds ? left || right : left && right;
  }
  if (!holds && is_true_under_torchrun(program, condition)) return true;
  if (condition.kind() != Kind::comparison || tree.child_count(condition.node) != 2) return false;
  const Ref left = condition.with(tree.child_at(condition.node, 0));
  const Ref right = condition.with(tree.child_at(condition.node, 1));
  if (op == diagnose::Op::in || op == diagnose::Op::not_in)
    return holds == (op == diagnose::Op::not_in) &&
           condition.module->api(right.node) == Api::environ &&
           is_given_by_torchrun(tree.string_value(left.node).value_or(""));
  if ((op == diagnose::Op::is || op == diagnose::Op::is_not) && right.text() == "None")
    return holds == (op == diagnose::Op::is) && is_text_of_torchrun(program, left);
  return asks_for_launcher({condition, !holds}) && reads_local_rank(program, left);
}

// if "LOCAL_RANK" in os.environ: work() else: mp.spawn(work): the script asks who started it.
bool asks_who_started(const Program& program, Ref spawn) {
  return program.under(spawn, [&](Ref condition, bool holds) {
    if (fails_under_torchrun(program, condition, holds)) return true;
    const CallRef call = program.as_call(condition);
    const diagnose::FunctionRef helper = call ? program.callee(call) : diagnose::FunctionRef{};
    if (helper && helper.function->returns.size() == 1 &&
        fails_under_torchrun(program, {helper.module, helper.function->returns.front()}, holds))
      return true;
    const auto& sources = program.sources(condition);  // of a flag, or what it returns
    return sources.size() == 1 && fails_under_torchrun(program, sources.front().ref, holds);
  });
}

// if is_dist_launch(): of a file that is not there, which may ask who started the script.
bool may_ask_who_started(const Program& program, Ref spawn) {
  return program.under(spawn, [&](Ref condition, bool) {
    const CallRef call = program.as_call(condition);
    return call && call.call->api == Api::none && !program.callee(call);
  });
}

// torchrun starts several processes, and each comes to the call.
void check_spawn_under_torchrun(const Program& program, const CallRef& spawn, Report& report) {
  if (asks_who_started(program, spawn.ref())) return;
  const Confidence confidence =
      may_ask_who_started(program, spawn.ref()) ? Confidence::likely : Confidence::certain;
  for (const LaunchLine& launch : program.launches())
    if (launch.launcher == Launcher::torchrun && launch.processes_per_node().value_or(2) > 1 &&
        !facts::is_passed_by(program, launch, spawn.ref()))
      report
          .at(spawn.ref(), confidence,
              "torchrun starts the ranks, and each of them spawns as many again")
          .help = "Use torchrun alone.";
}

// if "SLURM_PROCID" in os.environ: the mode of another launcher, in which nothing is spawned.
bool asks_for_slurm(Ref condition) {
  return condition.kind() == Kind::comparison && facts::contains(condition.text(), "SLURM_") &&
         facts::contains(condition.text(), " in os.environ") &&
         !facts::contains(condition.text(), " not in ");
}

bool is_of_slurm(const Program& program, const CallRef& init) {
  return program.under(
      init.ref(), [](Ref condition, bool holds) { return holds && asks_for_slurm(condition); });
}

// The ranks of mp.spawn join by the environment alone, whatever they are asked for.
bool joins_by_environment(const Program& program, const CallRef& init) {
  const Ref method = init.argument(1, "init_method");
  const auto& tree = init.module->tree();
  return runs_in_spawned(program, init.ref()) && variable_read(program, init) == "MASTER_ADDR" &&
         !(method && program.evaluate(method).is_default) &&
         tree.ancestor(init.call->node, Kind::try_statement) == kNoNode &&
         !program.under(init.ref(), [&](Ref condition, bool holds) {
           return !program.is_distributed_flag(condition) &&
                  !(asks_for_slurm(condition) && !holds) &&
                  !facts::contains(condition.text(), "is_available");
         });
}

// The line may set the variable: torchrun does, and so may a job.
bool may_give_address(const LaunchLine& launch) {
  return launch.launcher != Launcher::python || launch.sources_variables ||
         launch.environment.contains("MASTER_ADDR");
}

// int(os.environ["RANK"]) in another mode: whoever sets that for the script sets the address too.
bool has_environment_of_launcher(const Program& program) {
  for (const std::string_view name : {"'RANK'", "\"RANK\"", "'WORLD_SIZE'", "\"WORLD_SIZE\""})
    if (program.mentions(name)) return true;
  return false;
}

// mp.spawn sets rank and world size, and leaves the address of the first rank to the script.
void check_spawned_without_address(const Program& program, Report& report) {
  const auto inits = program.calls(Api::init_process_group);
  const auto spawns = program.calls(Api::spawn);
  const auto& launches = program.launches();
  if (inits.empty() || program.framework_distributes() || program.mentions("MASTER_ADDR") ||
      has_environment_of_launcher(program) ||
      facts::speaks_of(program, "torch.distributed.launch ") ||
      std::any_of(launches.begin(), launches.end(), may_give_address) ||
      std::none_of(spawns.begin(), spawns.end(), [&](const CallRef& spawn) {
        return facts::certainty_of_reach(program, spawn.ref()) == facts::Certainty::certain;
      }))
    return;
  const CallRef* told = nullptr;
  for (const CallRef& init : inits) {
    if (is_of_slurm(program, init)) continue;
    if (!joins_by_environment(program, init) || may_set(program, "MASTER_ADDR", init)) return;
    if (told == nullptr) told = &init;
  }
  if (told == nullptr) return;
  report
      .at(told->ref(), Confidence::likely,
          "mp.spawn sets no MASTER_ADDR as torchrun does, and nothing here does: ValueError, "
          "environment variable MASTER_ADDR expected, but not set")
      .help =
      "Set os.environ[\"MASTER_ADDR\"] and os.environ[\"MASTER_PORT\"] above it, or start "
      "the script with torchrun in place of mp.spawn.";
}

// Where it is missing the script ends: no try around it, or one that raises again.
bool ends_without(Ref read) {
  const auto& tree = read.module->tree();
  const diagnose::NodeId attempt = tree.ancestor(read.node, Kind::try_statement);
  if (attempt == kNoNode) return true;
  const diagnose::NodeId body = tree.child(attempt, diagnose::Field::body);
  if (body == kNoNode || !tree.contains(body, read.node)) return false;
  bool raises = false;
  for (auto at = tree[body].next_sibling; at != kNoNode; at = tree[at].next_sibling) {
    if (facts::contains(tree.text(at), "LOCAL_RANK =")) return false;
    raises = raises || facts::contains(tree.text(at), "raise ");
  }
  return raises;
}

// local_rank = int(os.environ["LOCAL_RANK"]) in the process that spawns: only torchrun and its kin
// set it, once for each rank.
Ref local_rank_needed_above(const Program& program, const CallRef& spawn) {
  const Module& module = *spawn.module;
  const auto here = program.enclosing_function(spawn.ref());
  for (const diagnose::NodeId node : module.nodes_of(Kind::subscript)) {
    const Ref read{&module, node};
    if (program.environment_name(read) != "LOCAL_RANK") continue;
    const diagnose::NodeId statement = module[node].parent;
    if (module[statement].kind == Kind::assignment &&
        module.tree().child(statement, diagnose::Field::left) == node)
      return {};  // os.environ["LOCAL_RANK"] = ...
    const auto function = program.enclosing_function(read);
    const bool above = !function || (function == here && node < spawn.call->node);
    if (above && program.guards(read).empty() && ends_without(read)) return read;
  }
  return {};
}

// The script cannot run without torchrun, and starts processes of its own.
void check_spawn_in_rank(const Program& program, const CallRef& spawn, Report& report) {
  if (spawn.call->name != "spawn" || program.framework_distributes() ||
      program.mentions("environ.update") || program.mentions("setdefault(\"LOCAL_RANK") ||
      !local_rank_needed_above(program, spawn))
    return;
  Finding& finding = report.at(spawn.ref(), Confidence::likely,
                               "the script needs the LOCAL_RANK that torchrun gives to each of its "
                               "ranks, and mp.spawn starts ranks again in every one of them");
  finding.severity = Severity::warning;
  finding.help = "Use torchrun alone: call the function, with the rank that torchrun gives.";
}

// The tuple behind args=args, where that name has one value only.
Ref listed_arguments(const Program& program, Ref arguments) {
  if (arguments.kind() != Kind::identifier) return arguments;
  const auto& sources = program.sources(arguments);
  return sources.size() == 1 && sources.front().how == Source::How::value &&
                 sources.front().ref.kind() == Kind::tuple
             ? sources.front().ref
             : arguments;
}

// 4, torch.cuda.device_count(), parser.parse_args(): one value, which cannot be spread.
bool is_one_value(const Program& program, const Source& source) {
  if (source.how != Source::How::value) return false;
  if (source.ref.kind() == Kind::integer || source.ref.kind() == Kind::floating) return true;
  const CallRef made = program.as_call(source.ref);
  if (!made) return false;
  const std::string_view name = made.call->name;
  return name == "device_count" || name == "parse_args" || name == "get_world_size" ||
         name == "int" || name == "len";
}

// args=(num_gpus): the tree keeps no parentheses, the text does.
bool stands_in_parentheses(Ref arguments) {
  const std::string_view text = arguments.module->tree().source();
  const auto before = [&](std::size_t at) { return text.find_last_not_of(" \n", at); };
  const std::size_t begin = arguments.module->tree()[arguments.node].begin;
  if (begin < 2) return false;
  const std::size_t open = before(begin - 1);
  if (open == std::string_view::npos || open == 0 || text[open] != '(') return false;
  const std::size_t outer = before(open - 1);
  return outer != std::string_view::npos && (text[outer] == '=' || text[outer] == ',');
}

// Whoever puts parentheses around the name of a number of GPUs means a tuple; what `args` or
// `extra` holds may be one already.
bool is_meant_as_tuple(const Program& program, Ref arguments) {
  const bool is_name = arguments.kind() == Kind::identifier || arguments.kind() == Kind::attribute;
  if (!is_name || !stands_in_parentheses(arguments)) return false;
  if (program.is_world_size(arguments)) return true;
  const std::string name = facts::lowered(arguments.text());
  const std::string_view last = std::string_view(name).substr(name.rfind('.') + 1);
  static constexpr std::string_view kCounts[] = {
      "num_gpus",  "n_gpus", "n_gpu",       "ngpus",     "num_gpu",
      "gpu_count", "nprocs", "num_devices", "n_devices", "num_processes"};
  return std::find(std::begin(kCounts), std::end(kCounts), last) != std::end(kCounts) ||
         last.starts_with("ngpus_per") || last == "world_size" || last == "worldsize";
}

// args=(world_size): the parentheses make no tuple, and mp.spawn spreads args behind the rank.
void check_args_in_parentheses(const Program& program, Ref arguments, Report& report) {
  const auto& sources = program.sources(arguments);
  const auto is_one = [&](const Source& source) { return is_one_value(program, source); };
  const auto is_several = [](const Source& source) {
    return source.ref.kind() == Kind::tuple || source.ref.kind() == Kind::list;
  };
  const bool meant = is_meant_as_tuple(program, arguments) &&
                     std::none_of(sources.begin(), sources.end(), is_several);
  if (!meant && (sources.empty() || !std::all_of(sources.begin(), sources.end(), is_one))) return;
  report
      .at(arguments, Confidence::certain,
          "mp.spawn spreads args, and '" + std::string(arguments.text()) +
              "' is one value: TypeError, argument after * must be an iterable")
      .help = "Write a tuple of one: args=(" + std::string(arguments.text()) + ",).";
}

// spawn() on the script's own level, or main() there, which spawns: the import of the script by a
// child comes by again. Empty where a guard of whatever kind stands around it.
Ref on_module_level(const Program& program, const CallRef& call, int depth = 0) {
  constexpr int kCallers = 3;
  const Module& module = *call.module;
  if (module.under_main_guard(call.call->node)) return {};
  const auto function = program.enclosing_function(call.ref());
  if (!function) return depth == 0 || program.guards(call.ref()).empty() ? call.ref() : Ref{};
  if (depth == kCallers || &module != &program.root() || !program.guards(call.ref()).empty() ||
      function.function->owner_class != kNoNode)
    return {};
  for (const CallRef& site : program.call_sites(function))
    if (const Ref found = on_module_level(program, site, depth + 1)) return found;
  return {};
}

// A child of spawn imports the worker by name from the parent's main module, which has no file.
void check_worker_of_notebook(const Program& program, const CallRef& spawn, Report& report) {
  if (!program.is_notebook() || spawn.call->name != "spawn" || spawn.module != &program.root() ||
      spawn.keyword("start_method"))
    return;
  const auto& workers = program.sources(spawn.argument(0, "fn"));
  if (workers.size() != 1 || workers.front().ref.kind() != Kind::function ||
      workers.front().ref.module != &program.root())
    return;
  const auto* function = workers.front().ref.module->function_at(workers.front().ref.node);
  report
      .at(spawn.ref(), Confidence::certain,
          "the spawned processes cannot import " + std::string(function->name) +
              ", which is defined in a cell: AttributeError, Can't get attribute")
      .help = "Put the function into a file that the notebook imports, or run a script.";
}

// mp.spawn(work, ...) below the main guard, where work() reads what the guard alone gives a value.
void check_names_of_parent(const Program& program, Report& report) {
  for (const Ref read : names_of_parent_alone(program)) {
    const std::string name(read.text());
    const bool always = program.guards(read).empty();
    Finding& finding = report.at(
        read, always ? Confidence::certain : Confidence::likely,
        "only the main guard gives '" + name +
            "' a value, and the spawned processes do not run what stands below it: NameError");
    finding.help = "Hand it to the function in args=(...), or give it a value above the guard.";
  }
}

}  // namespace

void check_spawn_misuse(const Program& program, Report& report) {
  if (program.uses(Api::spawn)) check_spawned_without_address(program, report);
  check_names_of_parent(program, report);
  for (const CallRef& spawn : program.calls(Api::spawn)) {
    if (facts::is_switched_off(program, spawn.ref())) continue;
    // def run(worker): mp.spawn(worker, ...) that nothing calls any more.
    const bool is_reached = facts::is_reachable(program, spawn.ref());
    if (is_reached) check_worker_of_notebook(program, spawn, report);
    const Ref open = program.is_notebook() ? Ref{} : on_module_level(program, spawn);
    if (open && spawn.call->name == "spawn")
      report
          .at(open, Confidence::certain,
              "mp.spawn at module level: every child imports the script and spawns again (\"before "
              "the current process has finished its bootstrapping phase\")")
          .help = "Put it under if __name__ == \"__main__\".";
    if (is_reached) check_spawn_under_torchrun(program, spawn, report);
    const auto& launches = program.launches();
    if (is_reached && std::none_of(launches.begin(), launches.end(), [](const LaunchLine& launch) {
          return launch.launcher == Launcher::torchrun &&
                 launch.processes_per_node().value_or(2) > 1;
        }))
      check_spawn_in_rank(program, spawn, report);
    const Ref target = spawn.argument(0, "fn");
    const Ref arguments = listed_arguments(program, spawn.argument(1, "args"));
    if (!target) continue;
    const bool listed = arguments && arguments.kind() == Kind::tuple;
    const std::size_t given =
        (listed ? arguments.module->tree().child_count(arguments.node) : 0) + 1;
    if (arguments && !listed) {
      check_args_in_parentheses(program, arguments, report);
      continue;
    }
    if (listed && facts::contains(arguments.text(), "*")) continue;  // args=(size, *rest)
    for (const Source& source : program.sources(target)) {
      if (source.ref.kind() != Kind::function) continue;
      const auto* function = source.ref.module->function_at(source.ref.node);
      std::size_t most = 0;
      std::size_t least = 0;
      bool open = false;
      for (const auto& parameter : function->parameters) {
        if (parameter.splat != 0)
          open = true;
        else
          ++most;
        if (parameter.splat == 0 && parameter.default_value == kNoNode) ++least;
      }
      if (function->owner_class != kNoNode || (given >= least && (open || given <= most))) continue;
      report
          .at(spawn.ref(), Confidence::certain,
              "mp.spawn calls " + std::string(function->name) + " with " + std::to_string(given) +
                  " arguments, the rank first, but it takes " + std::to_string(least) +
                  (open           ? " or more"
                   : most > least ? " to " + std::to_string(most)
                                  : std::string()) +
                  ": TypeError")
          .help = "The first parameter is the rank; args must hold the rest.";
    }
  }
}

}  // namespace bench::pitfalls
