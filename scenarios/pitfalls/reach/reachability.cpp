// Whether the program runs a node at all, and whether it does so before there are ranks.
#include "scenarios/pitfalls/frameworks/trainer_hooks.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/reach/certainty.hpp"
#include "scenarios/pitfalls/reach/command_lines.hpp"
#include "scenarios/pitfalls/reach/commented_calls.hpp"
#include "scenarios/pitfalls/reach/overridden.hpp"
#include "scenarios/pitfalls/reach/own_makers.hpp"
#include "scenarios/pitfalls/reach/switches.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

namespace bench::pitfalls::facts {

using diagnose::ClassRef;
using diagnose::Field;
using diagnose::FunctionRef;
using diagnose::Kind;
using diagnose::kNoNode;
using diagnose::NodeId;

namespace {

constexpr int kCalls = 5;
constexpr int kMostWays = 256;  // looked at, of a helper that is called from everywhere

// A run may pick the class, or one derived from it, by a name.
bool is_picked(const Program& program, ClassRef cls) {
  const auto& derived = program.derived_of(cls);
  return !program.picks_of(cls).empty() ||
         std::any_of(derived.begin(), derived.end(),
                     [&](const ClassRef& each) { return !program.picks_of(each).empty(); });
}

// An object of the class, or of one derived from it, is made in the program.
bool is_made(const Program& program, ClassRef cls) {
  if (!program.calls_named(cls.cls->name).empty()) return true;
  for (const ClassRef& derived : program.derived_of(cls))
    if (!program.calls_named(derived.cls->name).empty()) return true;
  return !program.handed_on(cls).empty() || !made_by_itself(program, cls).empty() ||
         is_picked(program, cls);
}

bool made_on_one_rank(const Program& program, ClassRef cls) {
  for (const CallRef& call : program.calls_named(cls.cls->name))
    if (program.guarded_by_rank(call.ref()) != diagnose::RankTest::none) return true;
  return false;
}

bool is_of_lightning(const Program& program, ClassRef cls) {
  return program.derives_from(cls, diagnose::Api::lightning_module) ||
         program.derives_from(cls, diagnose::Api::lightning_data_module) ||
         std::any_of(cls.cls->bases.begin(), cls.cls->bases.end(),
                     [&](NodeId base) { return contains(cls.module->text(base), "Callback"); });
}

// A method that a framework calls on the objects it is given: on_train_epoch_end, and setup() of a
// Lightning module.
bool is_hook(const Program& program, ClassRef owner, std::string_view name) {
  if (name.starts_with("on_") || name.ends_with("_step") || name.ends_with("_epoch_end"))
    return true;
  const bool may_be = name == "setup" || name == "teardown" || name == "forward" ||
                      name.ends_with("_dataloader") || name.starts_with("configure_");
  return may_be && owner && is_of_lightning(program, owner);
}

// What stands under the __main__ guard of a file runs when that file is the script.
bool runs_in_program(const Program& program, Ref node) {
  return node.module == &program.root() || !node.module->under_main_guard(node.node);
}

}  // namespace

bool is_command(const Program& program, FunctionRef function) {
  const diagnose::Module& file = *function.module;
  return &file == &program.root() && file.path().ends_with("__main__.py") &&
         !file.has_main_guard() && function.function->owner_class == kNoNode &&
         function.function->parameters.empty() && program.call_sites(function).empty();
}

bool is_left_to_others(const Program& program, ClassRef cls) {
  return cls.module == &program.root() &&
         program.derives_from(cls, diagnose::Api::lightning_module) && !is_made(program, cls);
}

namespace {

// main() of a script whose own guard does not call it, and nobody else either: # main()
bool is_passed_over(const Program& program, FunctionRef main) {
  const auto& tree = main.module->tree();
  const NodeId parent = tree[main.function->node].parent;
  return main.module->has_main_guard() && program.call_sites(main).empty() &&
         program.handed_on(main).empty() &&
         (parent == kNoNode || tree[parent].kind != Kind::decorated);
}

// The name stands for the function somewhere, and not only under the guards of files that the
// script imports: Process(target=work).
bool is_handed_on(const Program& program, FunctionRef function) {
  const auto places = program.handed_on(function);
  return std::any_of(places.begin(), places.end(),
                     [&](Ref place) { return runs_in_program(program, place); });
}

bool is_started(const Program& program, FunctionRef function) {
  return program.is_spawned(function) &&
         (program.handed_on(function).empty() || is_handed_on(program, function));
}

// Functions that call each other have more ways than can be looked at: beyond `left` of them the
// node counts as reached.
bool is_reached(const Program& program, Ref node, int& left, int depth = 0) {
  if (!runs_in_program(program, node) || is_switched_off(program, node)) return false;
  const FunctionRef function = program.enclosing_function(node);
  if (!function || depth > kCalls || --left < 0 || is_offered(program, function)) return true;
  const auto sites = sites_of(program, function);
  const ClassRef owner = program.enclosing_class(node);
  if (function.function->makes_object() && sites.empty())
    return function.module == &program.root() || !owner || is_made(program, owner);
  if (function.function->name == "main") {
    if (function.module == &program.root() && !is_passed_over(program, function)) return true;
    // The guard of a file that is a script of its own calls it.
    if (sites.empty() && function.module->has_main_guard()) return false;
    if (sites.empty()) return true;
  }
  if (is_started(program, function) || is_command(program, function)) return true;
  // A method of an object that exists may be called through a name that cannot be followed.
  const bool may_be_called =
      depth > 0 || (owner && is_hook(program, owner, function.function->name) &&
                    !made_on_one_rank(program, owner));
  if (may_be_called && sites.empty() && owner && is_made(program, owner)) return true;
  if (owner && is_hook(program, owner, function.function->name) &&
      is_left_to_others(program, owner))
    return true;
  if (is_trainer_hook(program, owner, function.function->name) && is_made(program, owner))
    return true;
  if (std::any_of(sites.begin(), sites.end(), [&](const CallRef& site) {
        return program.enclosing_function(site.ref()) == function ||
               is_reached(program, site.ref(), left, depth + 1);
      }))
    return true;
  if (is_called_in_comment(program, function) || is_typed_by_name(program, function)) return true;
  // Called in a way that is not seen: as a thread's target, a callback, fire.Fire(train).
  return function.function->makes_object() && owner ? !program.handed_on(owner).empty()
                                                    : is_handed_on(program, function);
}

}  // namespace

bool is_reachable(const Program& program, Ref node) {
  int left = kMostWays;
  return is_reached(program, node, left);
}

namespace {

// Something that is reached calls the function, and every such call passes the test.
template <typename Test>
bool at_every_site(const Program& program, const FunctionRef& function, const Test& test) {
  bool passed = false;
  for (const CallRef& site : program.call_sites(function)) {
    if (!is_reachable(program, site.ref())) continue;
    passed = test(site.ref());
    if (!passed) return false;
  }
  return passed;
}

// A call that leaves a switch off, as make(cache=False) does in the ranks, does not come by.
bool starts_before_ranks(const Program& program, Ref node, int& left, int depth,
                         Switches switches = {}) {
  if (program.before_ranks(node)) return true;
  const FunctionRef function = program.enclosing_function(node);
  if (!function || depth > kCalls || --left < 0 || program.runs_in_ranks(function)) return false;
  for (const Switch& each : switches_around(program, function, node)) switches.push_back(each);
  bool before = false;
  for (const CallRef& site : program.call_sites(function)) {
    Switches outer;
    if (!is_reachable(program, site.ref()) || is_in_unmade_class(program, site.ref()) ||
        is_switched_off_by(program, function, switches, site, outer))
      continue;
    if (starts_before_ranks(program, site.ref(), left, depth + 1, std::move(outer))) before = true;
    // Beside what the parent does, one rank alone does it as well: if rank == 0: make_data().
    else if (program.guarded_by_rank(site.ref()) != diagnose::RankTest::main_only)
      return false;
  }
  return before;
}

}  // namespace

bool only_before_ranks(const Program& program, Ref node) {
  int left = kMostWays;
  return starts_before_ranks(program, node, left, 0);
}

namespace {

// The function calls mp.spawn itself, or the code under the script's own guard does.
bool starts_ranks_here(const Program& program, Ref node) {
  const FunctionRef function = program.enclosing_function(node);
  if (!function && !node.module->under_main_guard(node.node)) return false;
  const auto starts = program.calls(diagnose::Api::spawn);
  return std::any_of(starts.begin(), starts.end(), [&](const CallRef& start) {
    return start.module == node.module && program.enclosing_function(start.ref()) == function;
  });
}

// init_process_group, or setup_distributed of a file that is not there.
bool joins_group(const CallRef& call) {
  if (call.call->api == diagnose::Api::init_process_group) return true;
  const std::string name = lowered(call.call->name);
  return contains(name, "dist") && (contains(name, "init") || contains(name, "setup"));
}

// What a launcher starts instead of mp.spawn joins a group itself: launched() beside mp.spawn(...).
bool joins_group_below(const Program& program, Ref node) {
  const CallRef call = program.as_call(node);
  return call && (joins_group(call) || program.subtree_calls(node, joins_group));
}

bool runs_in_parent(const Program& program, Ref node, int& left, int depth) {
  const FunctionRef function = program.enclosing_function(node);
  if (function && program.is_spawned(function)) return false;
  if (starts_ranks_here(program, node)) return !joins_group_below(program, node);
  if (!function || depth > kCalls || --left < 0 || !program.handed_on(function).empty())
    return false;
  return at_every_site(program, function,
                       [&](Ref site) { return runs_in_parent(program, site, left, depth + 1); });
}

// What Process(target=work) starts.
std::vector<FunctionRef> targets_of_processes(const Program& program) {
  std::vector<FunctionRef> out;
  for (const CallRef& process : program.calls_named("Process")) {
    if (!process.keyword("target")) continue;
    for (const diagnose::Source& source : program.sources(process.keyword("target")))
      if (source.ref.kind() == Kind::function)
        out.push_back({source.ref.module, source.ref.module->function_at(source.ref.node)});
  }
  return out;
}

// Every way to the node leads through one of the functions, or past none of them to the code under
// the script's own guard.
enum class Way : std::uint8_t { through, past };

bool all_lead(const Program& program, Ref node, Way way, const std::vector<FunctionRef>& targets,
              int& left, int depth = 0) {
  const FunctionRef function = program.enclosing_function(node);
  if (!function)
    return way == Way::past && node.module == &program.root() &&
           node.module->under_main_guard(node.node);
  if (std::find(targets.begin(), targets.end(), function) != targets.end())
    return way == Way::through;
  // What is handed on may be what a process is told to run.
  if (depth > kCalls || --left < 0 || (way == Way::past && !program.handed_on(function).empty()))
    return false;
  return at_every_site(program, function, [&](Ref site) {
    return all_lead(program, site, way, targets, left, depth + 1);
  });
}

// Ranks are processes that Process(target=work) starts, which alone join a group, and the node runs
// in the one that starts them.
bool runs_beside_processes(const Program& program, Ref node) {
  const auto& launches = program.launches();
  const auto targets = targets_of_processes(program);
  const auto joins = program.calls(diagnose::Api::init_process_group);
  int left = kMostWays;
  return !targets.empty() && !joins.empty() &&
         std::none_of(launches.begin(), launches.end(), starts_several) &&
         std::all_of(joins.begin(), joins.end(),
                     [&](const CallRef& join) {
                       return all_lead(program, join.ref(), Way::through, targets, left);
                     }) &&
         all_lead(program, node, Way::past, targets, left);
}

}  // namespace

bool only_in_parent(const Program& program, Ref node) {
  int left = kMostWays;
  if (program.uses(diagnose::Api::spawn)) return runs_in_parent(program, node, left, 0);
  return runs_beside_processes(program, node);
}

bool ends_process(Ref statement) {
  static constexpr std::array<std::string_view, 7> kEnds = {
      "sys.exit", "os._exit", "os.abort", "exit", "quit", "builtins.exit", "builtins.quit"};
  if (statement.kind() != Kind::expression_statement) return false;
  const diagnose::Module& module = *statement.module;
  const diagnose::Call* call = module.call_at(module.tree()[statement.node].first_child);
  if (call == nullptr) return false;
  const auto is_end = [](std::string_view path) {
    return std::find(kEnds.begin(), kEnds.end(), path) != kEnds.end();
  };
  return is_end(module.text(call->function)) || is_end(call->path);
}

namespace {

// The branch that the condition opens ends the process, or in a bare return: the function's other
// work is not done. One that gives something back has done the function's work: return train_set,
// test_set.
bool branch_returns(Ref condition) {
  const auto& tree = condition.module->tree();
  const NodeId branch = tree.child(tree[condition.node].parent, Field::consequence);
  if (branch == kNoNode) return false;
  NodeId last = kNoNode;
  for (NodeId at = tree[branch].first_child; at != kNoNode; at = tree[at].next_sibling) last = at;
  if (last == kNoNode) return false;
  if (ends_process(condition.with(last))) return true;
  return tree[last].kind == Kind::return_statement &&
         (tree[last].first_child == kNoNode ||
          tree[tree[last].first_child].kind == Kind::none_literal);
}

bool trains_there(const Program& program, Ref branch_condition) {
  const auto& loops = program.training_loops();
  return std::any_of(loops.begin(), loops.end(), [&](const diagnose::TrainingLoop& loop) {
    return program.under(loop.batches, [&](Ref condition, bool holds) {
      return holds && condition == branch_condition;
    });
  });
}

}  // namespace

bool only_in_a_side_mode(const Program& program, Ref node) {
  if (program.calls_named("backward").empty()) return false;
  return program.under(node, [&](Ref condition, bool holds) {
    // A condition with a call asks about the world (os.path.exists), not about an option.
    return holds && condition.text().find('(') == std::string_view::npos &&
           branch_returns(condition) && !trains_there(program, condition);
  });
}

}  // namespace bench::pitfalls::facts
