#include "diagnose/model/made_at.hpp"
#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/frameworks/lightning_dp.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/ranks/group_of_some_runs.hpp"
#include "scenarios/pitfalls/ranks/spawned_code.hpp"
#include "scenarios/pitfalls/ranks/uses_of_group.hpp"
#include "scenarios/pitfalls/reach/unconditional.hpp"

#include <algorithm>
#include <cctype>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Field;
using diagnose::Kind;
using diagnose::kNoNode;

namespace {

// if in_group(): of a helper that returns what dist.is_initialized() says, or a name for that.
bool asks_for_group(const Program& program, Ref condition, int depth = 0) {
  constexpr int kDeepest = 64;
  if (depth > kDeepest) return false;
  if (condition.kind() == Kind::not_expression)
    return asks_for_group(program, condition.child(diagnose::Field::argument), depth + 1);
  if (condition.kind() == Kind::boolean)
    return asks_for_group(program, condition.child(diagnose::Field::left), depth + 1) ||
           asks_for_group(program, condition.child(diagnose::Field::right), depth + 1);
  const auto asks = [](Ref at) { return facts::contains(at.text(), "is_initialized"); };
  const auto& sources = program.sources(condition);
  return std::any_of(sources.begin(), sources.end(), [&](const diagnose::Source& source) {
    if (asks(source.ref)) return true;
    // if not dist.is_initialized(): return False, and return True below it
    const auto guards = program.guards(source.ref);
    return program.as_call(condition) && source.how == diagnose::Source::How::value &&
           std::any_of(guards.begin(), guards.end(),
                       [&](const diagnose::Guard& guard) { return asks(guard.condition); });
  });
}

bool is_guarded_by_state(const Program& program, Ref node) {
  if (node.module->tree().ancestor(node.node, Kind::try_statement) != kNoNode) return true;
  return program.under(node, [&](Ref condition, bool) {
    return facts::contains(condition.text(), "is_initialized") ||
           facts::contains(condition.text(), "is_available") ||
           facts::contains(condition.text(), "distributed") || asks_for_group(program, condition);
  });
}

bool asks_for_mode(const diagnose::Guard& guard) {
  return guard.holds && facts::contains(guard.condition.text(), "distributed");
}

// `not args.distributed or get_rank() == 0` asks for the rank where args.distributed holds.
bool is_mode(const diagnose::Guard& guard, std::string_view mode) {
  const bool is_negated = guard.condition.kind() == Kind::not_expression;
  return guard.holds != is_negated && facts::contains(guard.condition.text(), mode);
}

// if distributed: above, where the join itself stands under that test: it asks how the program
// runs, and not whether there is a group.
bool is_guarded_by_mode(const Program& program, const CallRef& init, Ref node) {
  if (node.module->tree().ancestor(node.node, Kind::try_statement) != kNoNode) return false;
  const auto modes = program.guards(init.ref());
  const auto mode = std::find_if(modes.begin(), modes.end(), asks_for_mode);
  if (mode == modes.end() || asks_for_group(program, mode->condition)) return false;
  const auto guards = program.guards(node);
  return std::all_of(guards.begin(), guards.end(), [&](const diagnose::Guard& guard) {
    const std::string_view text = guard.condition.text();
    return !facts::contains(text, "is_initialized") && !facts::contains(text, "is_available") &&
           !asks_for_group(program, guard.condition) &&
           (!facts::contains(text, "distributed") || is_mode(guard, mode->condition.text()));
  });
}

// deepspeed.initialize(...), deepspeed.init_distributed()
bool is_of_deepspeed(const CallRef& join) { return join.call->path.starts_with("deepspeed."); }

// Both joins run, the first one perhaps in a helper that the function of the second one calls, and
// no group is left between them.
bool joins_twice(const Program& program, const CallRef& first, const CallRef& second) {
  if (is_of_deepspeed(second)) return false;  // which asks first
  const auto certain = [&](Ref node) {
    return is_unconditional(program, node) &&
           node.module->tree().ancestor(node.node, Kind::try_statement) == kNoNode;
  };
  if (!certain(first.ref()) || !certain(second.ref())) return false;
  Ref before = first.ref();
  if (program.enclosing_function(before) != program.enclosing_function(second.ref())) {
    const auto helper = program.enclosing_function(before);
    if (!helper || program.call_sites(helper).size() != 1) return false;
    before = program.call_sites(helper).front().ref();
    if (!certain(before) ||
        program.enclosing_function(before) != program.enclosing_function(second.ref()))
      return false;
  }
  if (before.module != second.module || before.node >= second.call->node ||
      facts::exclusive(before, second.ref()))
    return false;
  const auto leaves = program.calls(Api::destroy_process_group);
  return std::none_of(leaves.begin(), leaves.end(), [&](const CallRef& leave) {
    return program.runs_before(before, leave.ref()) &&
           program.runs_before(leave.ref(), second.ref());
  });
}

// The parent of the ranks joins a group, whatever it is asked for, and nobody else does.
bool only_the_parent_joins(const Program& program) {
  const auto is_main_guard = [](Ref condition) {
    return facts::contains(condition.text(), "__name__");
  };
  const auto inits = program.calls(Api::init_process_group);
  return std::all_of(inits.begin(), inits.end(), [&](const CallRef& init) {
    return facts::only_before_ranks(program, init.ref()) &&
           !program.under(init.ref(),
                          [&](Ref condition, bool) { return !is_main_guard(condition); });
  });
}

// mp.spawn starts new processes: a group that their parent joined is not theirs.
void check_spawned_without_group(const Program& program, Report& report) {
  if (!program.uses(Api::spawn) || !only_the_parent_joins(program)) return;
  for (const CallRef& spawn : program.calls(Api::spawn))
    if (!facts::is_reachable(program, spawn.ref())) return;
  for (const diagnose::FunctionRef& worker : program.functions()) {
    if (!program.is_spawned(worker)) continue;
    const auto reached = program.reached({worker.module, worker.function->body});
    for (const CallRef& use : program.calls(Api::ddp)) {
      const auto here = program.enclosing_function(use.ref());
      if (here != worker && std::find(reached.begin(), reached.end(), here) == reached.end())
        continue;
      report
          .at(use.ref(), Confidence::likely,
              "only the process that starts this one has joined the process group: ValueError "
              "\"Default process group has not been initialized\"")
          .help = "Call init_process_group in the function that mp.spawn starts.";
      return;
    }
  }
}

// setup_logger(), init_weights(), set_up_seed(): names that say what else they set up.
bool says_something_else(std::string_view name) {
  for (const std::string_view word :
       {"logg", "weight", "seed", "wandb", "random", "optim", "meter", "writer", "environ"})
    if (facts::contains(name, word)) return true;
  return false;
}

// Not of Python's own library or of the packages that every script knows.
bool is_first_party(std::string_view path) {
  for (const std::string_view package :
       {"torch",   "numpy",       "os",        "sys",      "time",      "tqdm",    "random",
        "copy",    "math",        "json",      "argparse", "PIL",       "cv2",     "sklearn",
        "pandas",  "collections", "functools", "timm",     "einops",    "logging", "datetime",
        "pathlib", "glob",        "shutil",    "warnings", "itertools", "typing",  "matplotlib"})
    if (path == package || path.starts_with(std::string(package) + ".") ||
        path.starts_with(std::string(package) + "vision"))
      return false;
  return true;
}

// from arguments_ddp import get_args: a file out of sight whose name speaks of such work may join
// the group when it is asked for something else.
bool imports_setup(const diagnose::Module& module) {
  const auto& imports = module.imports();
  return std::any_of(imports.begin(), imports.end(), [](const std::string& import) {
    if (import.starts_with("torch")) return false;
    const std::string name = facts::lowered(import);
    return !says_something_else(name) &&
           (facts::contains(name, "ddp") || facts::contains(name, "dist") ||
            facts::contains(name, "launch") || facts::contains(name, "setup"));
  });
}

// if world_size > 1: init_process_group(...), and below it a sampler whatever the test says.
void check_runs_without_group(const Program& program, Report& report) {
  const auto test = test_of_joining(program);
  if (!test || program.uses(Api::deepspeed)) return;
  // The first of them in its function is where the run stops.
  GroupUse first;
  for (const GroupUse& use : uses_of_group(program))
    if ((!first.call || stands_above(program, use, first)) &&
        runs_without_group(program, *test, use.call.ref()))
      first = use;
  if (!first.call) return;
  const std::string runs = test->attempt ? "where init_process_group fails"
                                         : "where `" + std::string(test->condition.text()) + "` " +
                                               (test->holds ? "does not hold" : "holds");
  report
      .at(first.call.ref(), Confidence::likely,
          runs + " no process group is joined, and " + first.what +
              ": ValueError \"Default process group has not been initialized\"")
      .help = "Do it under the same test as init_process_group.";
}

// def setup_ddp(): init_process_group(...) of a script that does not call setup_ddp() any more.
bool is_left_over(const Program& program, const CallRef& join) {
  const auto helper = program.enclosing_function(join.ref());
  if (!helper || program.enclosing_class(join.ref()) || !helper.module->has_main_guard())
    return false;
  const auto& tree = helper.module->tree();
  const auto parent = tree[helper.function->node].parent;
  return program.call_sites(helper).empty() && program.handed_on(helper).empty() &&
         !program.is_spawned(helper) && (parent == kNoNode || tree[parent].kind != Kind::decorated);
}

// The calls that join a group, without those of helpers that nothing calls.
std::vector<CallRef> joins_of(const Program& program) {
  const auto all = program.calls(Api::init_process_group);
  const auto engines = program.calls(Api::deepspeed);  // which join a group that nobody has joined
  std::vector<CallRef> joins(all.begin(), all.end());
  joins.insert(joins.end(), engines.begin(), engines.end());
  std::erase_if(joins, [&](const CallRef& join) { return is_left_over(program, join); });
  return joins;
}

bool is_named_below_imports(const diagnose::Module& module, std::string_view name) {
  const auto& tree = module.tree();
  for (diagnose::NodeId id = 0; id < tree[0].last; ++id)
    if (tree[id].kind == Kind::identifier && tree.text(id) == name &&
        tree.ancestor(id, Kind::import_from) == kNoNode)
      return true;
  return false;
}

// from utils import setup_ddp, whose call is gone: what was to join the group is known by its name,
// and nothing else that is called has such a one.
bool misses_call_of_join(const Program& program) {
  const auto is_join = [](std::string_view word) {
    const std::string name = facts::lowered(word);
    return (facts::contains(name, "setup") || facts::contains(name, "init")) &&
           (facts::contains(name, "ddp") || facts::contains(name, "dist") ||
            facts::contains(name, "process_group"));
  };
  bool misses = false;
  for (const diagnose::Module* module : program.modules()) {
    for (const diagnose::Call& made : module->calls())
      if (is_join(made.name)) return false;
    for (const diagnose::Def& def : module->defs()) {
      if (def.kind != diagnose::DefKind::import) continue;
      misses = misses || (is_join(def.name) && !is_named_below_imports(*module, def.name));
    }
  }
  return misses;
}

// A call out of sight may join the group: setup(rank), init_dist(args), idist.initialize().
bool may_be_joined_elsewhere(const Program& program) {
  if (misses_call_of_join(program)) return false;
  // A word for the call itself counts where it is not that of a helper that nothing calls.
  if (program.calls(Api::init_process_group).empty() && program.mentions("init_process_group"))
    return true;
  for (const char* word : {"init_distributed", "init_device_mesh", "Fabric", "init_rpc",
                           "smdistributed", "horovod", "_init_dist"})
    if (program.mentions(word)) return true;
  for (const diagnose::Module* module : program.modules()) {
    if (module->has_star_imports() || imports_setup(*module)) return true;
    for (const diagnose::Call& made : module->calls()) {
      if (made.api != Api::none || program.callee({module, &made})) continue;
      const std::string name = facts::lowered(made.name);
      for (const std::string_view word :
           {"init", "setup", "set_up", "dist", "ddp", "launch", "spawn", "start", "prepare", "env"})
        if (name != "__init__" && name != "getenv" && !says_something_else(name) &&
            facts::contains(name, word))
          return true;
    }
  }
  return false;
}

// class Trainer: model = DDP(model), in a file that runs nothing, or a main() that nothing here
// calls: what uses it may join before. The same of a function that only such code calls.
bool is_only_offered(const Program& program, Ref use) {
  // A method of a class that nothing here makes an object of, whatever calls it on self.
  if (const auto cls = program.enclosing_class(use);
      cls && program.calls_named(cls.cls->name).empty() && program.handed_on(cls).empty() &&
      program.derived_of(cls).empty())
    return true;
  for (const Ref place : diagnose::places_of(program, use))
    for (auto function = program.enclosing_function(place); function;
         function = program.enclosing_function({function.module, function.function->node}))
      if (facts::is_offered(program, function) ||
          (program.call_sites(function).empty() && !program.is_spawned(function)))
        return true;
  return false;
}

// Something of the project's own that is in no file given here.
bool is_of_file_out_of_sight(const Program& program, const CallRef& call) {
  Ref root{call.module, call.call->function};
  while (root.kind() == Kind::attribute) root = root.child(Field::object);
  if (root.kind() != Kind::identifier) return false;
  const std::string_view path = call.module->import_path(root.text());
  return !path.empty() && is_first_party(path) && !program.callee(call);
}

// config = get_config(), mylib.begin(args), engine = Engine(args): such that may join a group.
bool is_out_of_sight(const Program& program, const CallRef& call) {
  if (says_something_else(call.module->text(call.call->function)) ||
      !is_of_file_out_of_sight(program, call))
    return false;
  if (std::isupper(static_cast<unsigned char>(call.call->name.front())) == 0) return true;
  const std::string name = facts::lowered(call.call->name);
  for (const std::string_view word : {"engine", "trainer", "runner", "context", "config", "env"})
    if (facts::contains(name, word)) return true;
  return false;
}

// Parallel(args), but not get_args(), Config("x.yaml") or a parser of either, which hold what the
// command line says of the rank.
bool is_object_of_file_out_of_sight(const Program& program, const CallRef& made) {
  if (!made || std::isupper(static_cast<unsigned char>(made.call->name.front())) == 0) return false;
  const std::string name = facts::lowered(made.module->text(made.call->function));
  for (const std::string_view word :
       {"arg", "opt", "conf", "cfg", "pars", "flag", "param", "setting", "dict", "namespace"})
    if (facts::contains(name, word)) return false;
  return is_of_file_out_of_sight(program, made);
}

// DDP(model, device_ids=[parallel.rank]) after parallel = Parallel() of a file out of sight: who
// knows the rank has joined the group.
bool is_told_rank_out_of_sight(const Program& program, const CallRef& wrap) {
  const Ref devices = wrap.argument(1, "device_ids");
  if (!devices) return false;
  const auto& tree = devices.module->tree();
  for (diagnose::NodeId id = devices.node; id < tree[devices.node].last; ++id) {
    const Ref object = devices.with(id).child(Field::object);
    if (tree[id].kind != Kind::attribute || object.kind() != Kind::identifier) continue;
    for (const diagnose::Source& source : program.sources(object))
      if (is_object_of_file_out_of_sight(program, program.as_call(source.ref))) return true;
  }
  return false;
}

// What a file out of sight does may be anything; it matters for a question to the group more than
// for a wrapper.
bool may_join_unnamed(const Program& program) {
  for (const std::string_view package : {"transformers", "trl", "accelerate", "ignite"})
    if (program.imports(package)) return true;
  for (const diagnose::Module* module : program.modules())
    for (const diagnose::Call& made : module->calls())
      if (made.api == Api::none && is_out_of_sight(program, {module, &made})) return true;
  return false;
}

// def split(x, group): dist.get_rank(group): who has a group has joined one.
bool is_given_group(const Program& program, const CallRef& use) {
  const bool asks = use.call->api != Api::all_reduce;
  const Ref group = use.argument(asks ? 0 : 2, "group");
  return group && facts::is_parameter(program, group);
}

// model = DDP(model) or dist.get_rank(), and nothing in the program joins a process group.
void check_never_joined(const Program& program, Report& report) {
  if (program.mentions("init_device_mesh")) return;  // which joins the group that it needs
  const auto flag = [&](const CallRef& use, const char* what) {
    if (!facts::is_reachable(program, use.ref()) || is_only_offered(program, use.ref()))
      return false;
    if (may_be_joined_elsewhere(program)) return true;
    report
        .at(use.ref(), Confidence::likely,
            std::string(what) +
                " and nothing joins a process group: ValueError "
                "\"Default process group has not been initialized\"")
        .help = "Call torch.distributed.init_process_group first.";
    return true;
  };
  for (const CallRef& use : program.calls(Api::ddp))
    if (!use.argument(7, "process_group") &&
        (is_told_rank_out_of_sight(program, use) || flag(use, "DistributedDataParallel is built")))
      return;
  if (may_join_unnamed(program)) return;
  for (const Api api : {Api::get_rank, Api::get_world_size, Api::barrier, Api::all_reduce})
    for (const CallRef& use : program.calls(api))
      if (!is_guarded_by_state(program, use.ref()) && !is_given_group(program, use) &&
          flag(use, "the process group is used"))
        return;
}

// torch.distributed.all_gather() in a step under Lightning's "dp", which is one process.
void check_steps_in_one_process(const Program& program, Report& report) {
  const auto steps = steps_of_replicas(program);
  if (steps.empty() || !program.calls(Api::init_process_group).empty()) return;
  for (const Api api : {Api::get_rank, Api::get_world_size, Api::barrier, Api::all_reduce,
                        Api::all_gather, Api::broadcast})
    for (const CallRef& use : program.calls(api)) {
      const auto function = program.enclosing_function(use.ref());
      const bool is_called =
          std::find(steps.begin(), steps.end(), function) != steps.end() ||
          (function && std::any_of(steps.begin(), steps.end(), [&](const auto& step) {
             const auto calls = facts::calls_in({step.module, step.function->body});
             return std::any_of(calls.begin(), calls.end(), [&](const CallRef& call) {
               return program.callee(call) == function;
             });
           }));
      if (!is_called || is_guarded_by_state(program, use.ref()) ||
          facts::only_without_distribution(program, use.ref()))
        continue;
      report
          .at(use.ref(), Confidence::likely,
              "under strategy \"dp\" there is one process, and nothing joins a process group: "
              "ValueError \"Default process group has not been initialized\"")
          .help = "Use strategy=\"ddp\", or ask torch.distributed.is_initialized() first.";
      return;
    }
}

// deepspeed.initialize() is all that is seen to join, and it asks first: what is out of sight may
// have joined above it.
bool may_be_joined_above(const Program& program, const std::vector<CallRef>& joins) {
  return std::all_of(joins.begin(), joins.end(),
                     [](const CallRef& join) { return join.call->api == Api::deepspeed; }) &&
         (may_be_joined_elsewhere(program) || may_join_unnamed(program));
}

}  // namespace

void check_use_before_init_process_group(const Program& program, Report& report) {
  const auto inits = joins_of(program);
  if (inits.empty() && !program.framework_distributes() && program.modules().size() == 1)
    check_never_joined(program, report);
  check_steps_in_one_process(program, report);
  if (program.framework_distributes()) return;
  check_runs_without_group(program, report);
  if (inits.empty() || may_be_joined_above(program, inits)) return;
  const auto made_before = [&](const CallRef& use) {
    for (const CallRef& init : inits) {
      if (facts::exclusive(use.ref(), init.ref())) return true;
      // A helper that several modes call joins the group above it in one of them.
      if (!program.runs_before(use.ref(), init.ref()) || program.runs_before(init.ref(), use.ref()))
        return true;
    }
    return false;
  };
  const std::string join =
      is_of_deepspeed(inits.front()) ? "deepspeed.init_distributed" : "init_process_group";
  const auto flag = [&](const CallRef& use, std::string_view what) {
    if (made_before(use) || !facts::is_reachable(program, use.ref())) return;
    report
        .at(use.ref(), Confidence::certain,
            std::string(what) + " before " + join +
                ": ValueError \"Default process group has "
                "not been initialized\"")
        .help = "Move " + join + " above it.";
  };
  for (const CallRef& use : program.calls(Api::ddp)) flag(use, "DistributedDataParallel is built");
  for (const CallRef& use : program.calls(Api::distributed_sampler))
    if (!(use.argument(1, "num_replicas") && use.argument(2, "rank")))
      flag(use, "DistributedSampler is built");
  for (const Api api : {Api::get_rank, Api::get_world_size, Api::barrier})
    for (const CallRef& use : program.calls(api))
      if (!is_guarded_by_state(program, use.ref()) ||
          std::any_of(inits.begin(), inits.end(), [&](const CallRef& init) {
            return is_guarded_by_mode(program, init, use.ref());
          }))
        flag(use, "the process group is used");
  for (const CallRef& second : inits)
    for (const CallRef& first : inits)
      if (first.call != second.call && joins_twice(program, first, second))
        report
            .at(second.ref(), Confidence::certain,
                "the process group is initialised a second time: ValueError \"trying to initialize "
                "the default process group twice!\"")
            .help = "Initialise it once; guard with dist.is_initialized().";
  check_spawned_without_group(program, report);
  for (const CallRef& leave : leaves_of_parent(program)) {
    Finding& finding =
        report.at(leave.ref(), Confidence::likely,
                  "the process that starts the ranks has joined no group that it could leave: "
                  "AssertionError \"Process group cannot be None\"");
    finding.severity = Severity::warning;
    finding.help = "Leave the group at the end of the function that mp.spawn starts.";
  }
}

}  // namespace bench::pitfalls
