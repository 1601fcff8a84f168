#include "scenarios/pitfalls/reach/certainty.hpp"

#include "diagnose/model/made_at.hpp"
#include "scenarios/pitfalls/frameworks/engines.hpp"
#include "scenarios/pitfalls/frameworks/horovod_alone.hpp"
#include "scenarios/pitfalls/frameworks/prepared.hpp"
#include "scenarios/pitfalls/frameworks/trainer_hooks.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/ranks/launched_with.hpp"
#include "scenarios/pitfalls/ranks/notebook_ranks.hpp"
#include "scenarios/pitfalls/ranks/own_ranks.hpp"
#include "scenarios/pitfalls/ranks/wrapped_ranks.hpp"
#include "scenarios/pitfalls/reach/as_launched.hpp"
#include "scenarios/pitfalls/reach/command_lines.hpp"
#include "scenarios/pitfalls/reach/commented_calls.hpp"
#include "scenarios/pitfalls/reach/other_names.hpp"
#include "scenarios/pitfalls/reach/overridden.hpp"
#include "scenarios/pitfalls/reach/own_makers.hpp"
#include "scenarios/pitfalls/reach/question.hpp"
#include "scenarios/pitfalls/reach/switches.hpp"
#include "scenarios/pitfalls/reach/unconditional.hpp"

#include <algorithm>
#include <cctype>
#include <vector>

namespace bench::pitfalls::facts {

using diagnose::Api;
using diagnose::ClassRef;
using diagnose::Field;
using diagnose::FunctionRef;
using diagnose::Kind;
using diagnose::kNoNode;
using diagnose::NodeId;
using diagnose::RankTest;
using diagnose::Wrap;
using diagnose::Wrapper;

namespace {

// NUM_GPUS at the head of the file: a number that whoever has more GPUs changes there.
bool is_setting(std::string_view name) {
  return !name.empty() &&
         name.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") ==
             std::string_view::npos &&
         std::isdigit(static_cast<unsigned char>(name.front())) == 0;
}

}  // namespace

bool is_one_for_good(const Program& program, Ref number) {
  return number.kind() == Kind::integer && number.text() == "1" &&
         !(is_setting(program.assigned_name(number)) && program.uses(Api::spawn));
}

bool is_written_for_one(const Program& program, const CallRef& init) {
  const Ref size = program.written(init.keyword("world_size"));
  const Ref rank = program.written(init.keyword("rank"));
  return is_one_for_good(program, size) ||
         (!size && rank.kind() == Kind::integer && rank.text() == "0");
}

bool is_one_by_setting(const Program& program) {
  const auto spawns = program.calls(Api::spawn);
  return !spawns.empty() && program.launches().empty() &&
         std::all_of(spawns.begin(), spawns.end(), [&](const CallRef& spawn) {
           const Ref processes = spawn.argument(2, "nprocs");
           return processes && is_setting(processes.text()) &&
                  program.written(processes).text() == "1";
         });
}

bool starts_several(const diagnose::LaunchLine& launch) {
  return launch.processes_per_node().value_or(1) > 1 || launch.nodes().value_or(1) > 1;
}

namespace {

constexpr int kFollowedCalls = 6;

// Called through the object itself (model(x), dataset[i]) or by a framework (training_step).
bool is_called_unseen(std::string_view name) {
  return name == "forward" || name.starts_with("__") || name.starts_with("on_") ||
         name.ends_with("_step") || name.ends_with("_epoch_end") || name.ends_with("_dataloader") ||
         name.starts_with("configure_") || name == "setup" || name == "prepare_data";
}

Certainty reach(const Program& program, Ref node, int depth, Switches switches = {});

// Trainer(callbacks=[Saver]), callbacks.append(Saver), trainer.add_callback(Saver): Hugging Face's
// Trainer makes the object itself.
bool is_left_to_trainer(const Program& program, Ref place) {
  const auto& tree = place.module->tree();
  const NodeId parent = tree[place.node].parent;
  if (parent == kNoNode || !program.uses(Api::hf_trainer)) return false;
  if (tree[parent].kind == Kind::list) return true;
  const CallRef call = tree[parent].kind == Kind::argument_list
                           ? program.as_call(place.with(tree[parent].parent))
                           : CallRef{};
  return call && (call.call->name == "add_callback" || call.call->name == "append");
}

// An object of the class, or of one derived from it, is made where the program comes by.
Certainty certainty_of_object(const Program& program, ClassRef cls, int depth) {
  Certainty best = Certainty::no;
  const auto made_by = [&](std::span<const CallRef> calls) {
    for (const CallRef& made : calls)
      if (best != Certainty::certain) best = std::max(best, reach(program, made.ref(), depth + 1));
  };
  const auto made_as = [&](ClassRef each) {
    made_by(program.calls_named(each.cls->name));
    made_by(program.picks_of(each));
  };
  made_as(cls);
  for (const ClassRef& derived : program.derived_of(cls)) made_as(derived);
  for (const CallRef& made : made_by_itself(program, cls))
    if (best != Certainty::certain) best = std::max(best, reach(program, made.ref(), depth + 1));
  for (const Ref& place : program.handed_on(cls))
    if (best != Certainty::certain && is_left_to_trainer(program, place))
      best = std::max(best, reach(program, place, depth + 1));
  return is_left_to_others(program, cls) ? Certainty::certain : best;
}

// All objects of the class are made by its name: where the program comes by none of those places,
// what a name in a call may mean is not one of them.
bool is_made_by_name_only(const Program& program, ClassRef cls) {
  return !program.calls_named(cls.cls->name).empty() && program.handed_on(cls).empty();
}

// @app.command() and its kin keep the function for a framework to call; PyTorch's own decorators
// (torch.no_grad, torch.compile) leave the calling to the program.
bool is_registered(FunctionRef function) {
  const auto& module = *function.module;
  const auto& tree = module.tree();
  const NodeId parent = tree[function.function->node].parent;
  if (parent == kNoNode || tree[parent].kind != Kind::decorated) return false;
  for (NodeId at = tree[parent].first_child; at != kNoNode; at = tree[at].next_sibling) {
    if (tree[at].kind != Kind::decorator) continue;
    NodeId name = tree[at].first_child;
    if (name != kNoNode && tree[name].kind == Kind::call) name = tree.child(name, Field::function);
    if (name == kNoNode || !module.qualified(name).starts_with("torch.")) return true;
  }
  return false;
}

// The function joins a process group, under Horovod too, or calls what does: setup().
bool is_worker(const Program& program, FunctionRef function) {
  const auto reached = program.reached({function.module, function.function->body});
  const auto inside = [&](const CallRef& call) {
    if (call.module == function.module &&
        call.module->tree().contains(function.function->body, call.call->node))
      return true;
    const FunctionRef helper = program.enclosing_function(call.ref());
    return helper && helper.function->owner_class == kNoNode &&
           std::find(reached.begin(), reached.end(), helper) != reached.end();
  };
  for (const Api api : {Api::init_process_group, Api::hvd_init})
    if (const auto joins = program.calls(api); std::any_of(joins.begin(), joins.end(), inside))
      return true;
  return false;
}

// The script's own entry that no call leads to: @app.command(), an entry point "main", or a worker
// that a file beside the script starts.
bool is_entry(const Program& program, FunctionRef function) {
  if (is_offered(program, function) || is_typed_by_name(program, function)) return true;
  if (function.module != &program.root() || function.function->owner_class != kNoNode) return false;
  if (is_registered(function) || is_called_in_comment(program, function)) return true;
  // The script's guard that does without main() has another entry; what calls main() is followed.
  const bool is_called = !program.call_sites(function).empty();
  if (!is_called && function.module->has_main_guard()) return false;
  return function.function->name == "main" || (!is_called && is_worker(program, function));
}

// Where the function is handed on: Process(target=work), fire.Fire(train), step = left or right.
Certainty certainty_of_handing_on(const Program& program, FunctionRef function,
                                  const Switches& switches, int depth) {
  Certainty best = Certainty::no;
  for (const Ref& place : program.handed_on(function)) {
    if (best == Certainty::certain) break;
    if (is_switched_off_in_table(program, function, switches, place) ||
        is_switched_off_by_other_name(program, function, switches, place) ||
        (!program.enclosing_function(place) && is_in_unmade_class(program, place)))
      continue;
    best = std::max(best, reach(program, place, depth + 1));
  }
  return best;
}

// The ranks that a function runs in are started where the program comes by.
Certainty certainty_of_start(const Program& program, int depth) {
  Certainty best = Certainty::no;
  for (const CallRef& start : program.calls(Api::spawn))
    if (best != Certainty::certain) best = std::max(best, reach(program, start.ref(), depth + 1));
  return best;
}

// In a lambda that is not handed to a call on the spot: agent(id, lambda: main(args)) runs it.
bool is_kept_in_lambda(Ref node) {
  const auto& tree = node.module->tree();
  for (NodeId at = tree.ancestor(node.node, Kind::lambda); at != kNoNode;
       at = tree.ancestor(at, Kind::lambda)) {
    NodeId parent = tree[at].parent;
    if (parent != kNoNode && tree[parent].kind == Kind::keyword_argument)
      parent = tree[parent].parent;
    if (parent == kNoNode || tree[parent].kind != Kind::argument_list) return true;
  }
  return false;
}

Certainty reach(const Program& program, Ref node, int depth, Switches switches) {
  const Question question;
  if (node.module != &program.root() && node.module->under_main_guard(node.node))
    return Certainty::no;
  if (is_switched_off(program, node)) return Certainty::no;
  // A table of lambdas: which of them is called, and where, is not followed.
  if (is_kept_in_lambda(node)) return Certainty::perhaps;
  const FunctionRef function = program.enclosing_function(node);
  if (!function || is_entry(program, function)) return Certainty::certain;
  if (is_replaced_below(function)) return Certainty::no;
  if (depth > kFollowedCalls || Question::is_exhausted()) return Certainty::perhaps;
  if (program.is_spawned(function)) return certainty_of_start(program, depth);
  const ClassRef owner = program.enclosing_class(node);
  const bool by_name = owner && is_made_by_name_only(program, owner) && !needs_no_object(function);
  const bool unseen = owner && (is_called_unseen(function.function->name) ||
                                is_trainer_hook(program, owner, function.function->name));
  const Certainty object =
      by_name || unseen ? certainty_of_object(program, owner, depth) : Certainty::no;
  if ((by_name && object == Certainty::no) || is_overridden_everywhere(program, function, owner))
    return Certainty::no;
  Certainty best = is_reachable(program, node) ? Certainty::perhaps : Certainty::no;
  for (const Switch& each : switches_around(program, function, node)) switches.push_back(each);
  for (const CallRef& site : sites_of(program, function)) {
    Switches outer;
    if (program.enclosing_function(site.ref()) == function ||
        is_switched_off_by(program, function, switches, site, outer) ||
        runs_another_method(program, function, site))
      continue;
    best = std::max(best, reach(program, site.ref(), depth + 1, std::move(outer)));
    if (best == Certainty::certain) return best;
  }
  const bool is_made_in_sight =
      function.function->makes_object() && !program.call_sites(function).empty();
  if (unseen && !is_made_in_sight) best = std::max(best, object);
  return best == Certainty::certain
             ? best
             : std::max(best, certainty_of_handing_on(program, function, switches, depth));
}

// The guard of the script's own file holds wherever the script is run.
bool is_main_guard(const Program& program, const diagnose::Guard& guard) {
  return guard.holds && guard.condition.module == &program.root() &&
         contains(guard.condition.text(), "__name__");
}

// if not torch.cuda.is_available(): raise RuntimeError(...) above the node: a run that gets further
// passes by.
bool is_refusal(const diagnose::Guard& guard) {
  if (guard.holds) return false;
  const auto& tree = guard.condition.module->tree();
  const NodeId test = tree[guard.condition.node].parent;
  const NodeId branch = tree.child(test, diagnose::Field::consequence);
  if (tree[test].kind != Kind::if_statement || branch == kNoNode) return false;
  NodeId last = tree[branch].first_child;
  while (last != kNoNode && tree[last].next_sibling != kNoNode) last = tree[last].next_sibling;
  return last != kNoNode && tree[last].kind == Kind::raise_statement;
}

// No condition stands between the script's own level and the node.
bool runs_always(const Program& program, Ref node, int depth) {
  const Question question;
  const auto guards = program.guards(node);
  if (!std::all_of(guards.begin(), guards.end(), [&](const diagnose::Guard& guard) {
        return is_main_guard(program, guard) || is_refusal(guard);
      }))
    return false;
  const FunctionRef function = program.enclosing_function(node);
  if (!function || is_entry(program, function)) return true;
  if (depth > kFollowedCalls || Question::is_exhausted()) return false;
  if (program.is_spawned(function)) return certainty_of_start(program, depth) == Certainty::certain;
  const auto& sites = program.call_sites(function);
  return std::any_of(sites.begin(), sites.end(), [&](const CallRef& site) {
    return program.enclosing_function(site.ref()) != function &&
           runs_always(program, site.ref(), depth + 1);
  });
}

// join(0, 1) of a helper that hands its parameter on: all that calls it writes a one.
bool is_given_one(const Program& program, Ref size) {
  if (!is_parameter(program, size)) return false;
  const FunctionRef helper = program.enclosing_function(size);
  if (program.call_sites(helper).empty() || !program.handed_on(helper).empty()) return false;
  const auto& sources = program.sources(size);
  return !sources.empty() &&
         std::all_of(sources.begin(), sources.end(), [&](const diagnose::Source& source) {
           return source.how == diagnose::Source::How::value &&
                  is_one_for_good(program, source.ref) &&
                  !(source.ref.module == helper.module &&
                    helper.module->tree().contains(helper.function->node, source.ref.node));
         });
}

// With the rank written out, every process of a larger group would be the same one.
bool is_group_of_one(const Program& program, const CallRef& init) {
  return is_written_for_one(program, init) ||
         is_given_one(program, program.written(init.keyword("world_size")));
}

// launch(main, num_gpus, num_machines, machine_rank, url): a library's launcher, which is not at
// hand, is given a function of the program and the numbers that start its ranks.
bool launches_ranks(const Program& program) {
  for (const CallRef& call : program.calls_named("launch")) {
    const auto& handed = program.sources(call.positional(0));
    const bool starts = std::any_of(handed.begin(), handed.end(), [](const auto& source) {
      return source.ref.kind() == Kind::function;
    });
    if (!starts || program.callee(call) || reach(program, call.ref(), 0) != Certainty::certain)
      continue;
    for (std::size_t i = 1; const Ref argument = call.positional(i); ++i)
      if (contains(lowered(argument.text()), "machine_rank")) return true;
  }
  return false;
}

// A call that fails outside of a process group, and that no option can switch off.
bool always_in_a_group(const Program& program) {
  for (const Wrap& wrap : program.wraps())
    if (wrap.kind == Wrapper::ddp && runs_always(program, wrap.call.ref(), 0)) return true;
  for (const Api api :
       {Api::get_rank, Api::get_world_size, Api::barrier, Api::all_reduce, Api::all_gather,
        Api::gather, Api::broadcast, Api::reduce, Api::reduce_scatter, Api::scatter,
        Api::all_to_all, Api::destroy_process_group})
    for (const CallRef& call : program.calls(api))
      if (runs_always(program, call.ref(), 0)) return true;
  for (const CallRef& hook : program.calls_named("register_comm_hook"))
    if (runs_always(program, hook.ref(), 0)) return true;
  const auto samplers = program.calls(Api::distributed_sampler);
  return std::any_of(samplers.begin(), samplers.end(), [&](const CallRef& sampler) {
    return !sampler.argument(1, "num_replicas") && runs_always(program, sampler.ref(), 0);
  });
}

// deepspeed.initialize(...), which joins a group itself, or FSDP(model), which needs one.
bool makes_engine(const Program& program) {
  const auto made = engines_made(program);
  return !program.is_notebook() &&
         std::any_of(made.begin(), made.end(), [&](const CallRef& engine) {
           return reach(program, engine.ref(), 0) == Certainty::certain;
         });
}

// utils.init_distributed_mode(args), of a file that is not there: it joins a group by its name.
bool is_named_joining(std::string_view name) {
  const std::string plain = lowered(name);
  const bool starts = contains(plain, "init") || contains(plain, "setup");
  return starts && plain != "setup_for_distributed" &&
         (contains(plain, "distributed") || contains(plain, "distrubuted") ||
          plain == "setup_multiprocessing" || contains(plain, "process_group") ||
          plain == "init_dist" || plain == "setup_dist" || plain == "dist_init" ||
          plain == "setup_ddp" || plain == "ddp_setup" || plain == "init_ddp");
}

// What is saved of model.module is that of a wrapper, which may be made out of sight as well.
bool joins_out_of_sight(const Program& program) {
  if (!program.has_ddp() && !program.mentions(".module.state_dict()")) return false;
  const auto& calls = program.root().calls();
  return std::any_of(calls.begin(), calls.end(), [&](const diagnose::Call& each) {
    const CallRef call{&program.root(), &each};
    return each.api == Api::none && is_named_joining(each.name) && !program.callee(call) &&
           reach(program, call.ref(), 0) == Certainty::certain;
  });
}

}  // namespace

bool is_made_for_several_gpus(const Program& program, const Wrap& wrap) {
  const auto guards = diagnose::guards_where_made(program, wrap.call);
  return std::any_of(guards.begin(), guards.end(), [](const diagnose::Guard& guard) {
    const std::string_view text = guard.condition.text();
    return guard.holds && contains(text, "device_count()") && contains(text, "> 1");
  });
}

namespace {

// os.environ["CUDA_VISIBLE_DEVICES"] = "0" at the script's own level, whatever the machine has.
bool pins_one_gpu(const Program& program) {
  const diagnose::Module& root = program.root();
  const auto& assignments = root.nodes_of(Kind::assignment);
  return visible_gpus(program) == 1 &&
         std::any_of(assignments.begin(), assignments.end(), [&](NodeId node) {
           const Ref at{&root, node};
           return !program.enclosing_function(at) && is_unconditional(program, at) &&
                  program.environment_name(at.child(diagnose::Field::left)) ==
                      "CUDA_VISIBLE_DEVICES" &&
                  program.string(at.child(diagnose::Field::right)).has_value();
         });
}

// nprocs=torch.cuda.device_count(), also by a name.
bool counts_gpus(const Program& program, Ref count) {
  const auto& sources = program.sources(count);
  return !sources.empty() &&
         std::all_of(sources.begin(), sources.end(), [&](const diagnose::Source& source) {
           const CallRef call = program.as_call(source.ref);
           return call && call.call->name == "device_count";
         });
}

// mp.spawn(work, nprocs=1), or one process for the only GPU that the script lets itself see, and
// nothing else starts ranks.
bool spawns_one(const Program& program) {
  const auto spawns = program.calls(Api::spawn);
  return !spawns.empty() && program.launches().empty() &&
         std::all_of(spawns.begin(), spawns.end(), [&](const CallRef& spawn) {
           const Ref processes = spawn.argument(2, "nprocs");
           if (spawn.call->name != "spawn" || !processes) return false;
           const diagnose::Value count = program.evaluate(processes);
           if (count.is_integer())
             return count.integer == 1 && !count.is_default && !is_setting(processes.text());
           return counts_gpus(program, processes) && pins_one_gpu(program);
         });
}

// Every line that is known to start the script is plain python without a word of several processes,
// nothing in it starts any, and an option decides whether it joins a group.
bool is_started_alone(const Program& program) {
  const auto& launches = program.launches();
  const auto is_plain = [](const diagnose::LaunchLine& launch) {
    if (launch.launcher != diagnose::Launcher::python) return false;
    const auto& words = launch.script_arguments;
    for (std::size_t i = 0; i < words.size(); ++i) {
      const std::string text = lowered(words[i].text);
      for (const char* part : {"dist", "ddp", "world", "proc", "gpus", "rank", "node", "launch"})
        if (contains(text, part)) return false;
      if (may_hold_options(words, i)) return false;
    }
    return true;
  };
  if (launches.empty() || !std::all_of(launches.begin(), launches.end(), is_plain) ||
      program.uses(Api::spawn) || program.framework_distributes())
    return false;
  for (const CallRef& start : starts_of_processes(program))
    if (may_start_a_rank(program, start)) return false;
  for (const char* launcher : {"torchrun", "distributed.launch", "distributed.run", "srun"})
    if (speaks_of(program, launcher)) return false;
  for (const char* set : {"'LOCAL_RANK'", "\"LOCAL_RANK\"", "'RANK'", "\"RANK\"", "SLURM_"})
    if (program.mentions(set)) return false;  // by a launcher
  const auto inits = program.calls(Api::init_process_group);
  return std::none_of(inits.begin(), inits.end(),
                      [&](const CallRef& init) { return runs_always(program, init.ref(), 0); });
}

}  // namespace

Certainty certainty_of_reach(const Program& program, Ref node) { return reach(program, node, 0); }

Certainty certainty_of_ranks(const Program& program) {
  if (spawns_one(program) || is_notebook_of_one_process(program) || claims_one_process(program))
    return Certainty::no;
  const auto& launches = program.launches();
  if (std::any_of(launches.begin(), launches.end(), starts_several)) return Certainty::certain;
  const auto horovod = program.calls(Api::hvd_init);
  if (only_joins_horovod(program)) return Certainty::perhaps;
  if (std::any_of(horovod.begin(), horovod.end(), [&](const CallRef& init) {
        return reach(program, init.ref(), 0) == Certainty::certain;
      }))
    return Certainty::certain;
  if ((program.framework_distributes() || is_handed_accelerator(program)) && horovod.empty())
    return Certainty::certain;
  if (is_started_alone(program)) return Certainty::perhaps;
  if (has_trainer_ranks(program)) return Certainty::certain;
  Certainty best = Certainty::perhaps;
  bool alone = false;
  for (const CallRef& init : program.calls(Api::init_process_group)) {
    if (is_group_of_one(program, init)) {
      alone = true;
      continue;
    }
    best = std::max(best, reach(program, init.ref(), 0));
  }
  if (best == Certainty::certain) return best;
  if (alone) return Certainty::no;
  return works_in_a_group(program) ? Certainty::certain : best;
}

bool works_in_a_group(const Program& program) {
  return wraps_in_ranks(program) || makes_engine(program) || launches_ranks(program) ||
         always_in_a_group(program) || joins_out_of_sight(program);
}

}  // namespace bench::pitfalls::facts
