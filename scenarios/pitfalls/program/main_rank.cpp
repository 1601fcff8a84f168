// The test of the first rank that an edit puts above a line. It has to hold wherever the line runs:
// in runs without a process group, and in scripts that only import the file.
#include "scenarios/pitfalls/program/argument_for.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/importers.hpp"
#include "scenarios/pitfalls/program/words.hpp"
#include "scenarios/pitfalls/ranks/group_of_some_runs.hpp"
#include "scenarios/pitfalls/reach/order.hpp"
#include "scenarios/pitfalls/reach/unconditional.hpp"

#include <algorithm>
#include <array>

namespace bench::pitfalls::facts {

using diagnose::Api;
using diagnose::Field;
using diagnose::FunctionRef;
using diagnose::Kind;
using diagnose::kNoNode;
using diagnose::NodeId;
using diagnose::Source;

namespace {

constexpr std::array<std::string_view, 3> kRanks = {"rank", "global_rank", "local_rank"};

// What a run without ranks has for one: with it, `rank == 0` holds nowhere.
bool says_no_rank(std::string_view text) { return holds_any(text, {"-1", "None", "- 1"}); }

bool may_be_no_rank(const Program& program, Ref value) {
  if (says_no_rank(value.text())) return true;
  const auto& sources = program.sources(value);
  return std::any_of(sources.begin(), sources.end(),
                     [](const Source& source) { return says_no_rank(source.ref.text()); });
}

// rank of def train(rank, world_size); not of def build(net, rank=None).
std::string rank_parameter(const Program& program, Ref node) {
  const FunctionRef here = program.enclosing_function(node);
  if (!here) return {};
  for (const auto& parameter : here.function->parameters) {
    if (std::find(kRanks.begin(), kRanks.end(), parameter.name) == kRanks.end()) continue;
    const Ref usual = node.with(parameter.default_value);
    const auto& sites = program.call_sites(here);
    if ((usual && may_be_no_rank(program, usual)) ||
        std::any_of(sites.begin(), sites.end(), [&](const CallRef& site) {
          const Ref given = argument_for(site, here, parameter.name);
          return given && may_be_no_rank(program, given);
        }))
      continue;
    return std::string(parameter.name) + " == 0";
  }
  return {};
}

bool has_group_test(std::string_view text) {
  return holds_any(text, {"is_initialized", "is_available", "is_dist"});
}

// def is_main_process() that any line may call: without arguments, and without a group.
bool is_callable_anywhere(FunctionRef test) {
  const auto& parameters = test.function->parameters;
  const bool is_method = test.function->owner_class != kNoNode;
  const std::string_view body = test.module->text(test.function->body);
  return std::all_of(
             parameters.begin() + (is_method && !parameters.empty() ? 1 : 0), parameters.end(),
             [](const auto& each) { return each.default_value != kNoNode || each.splat != 0; }) &&
         (!holds_any(body, {"dist.get_rank(", "distributed.get_rank("}) || has_group_test(body));
}

bool is_function_of_file(const diagnose::Module& module, std::string_view name) {
  const auto& functions = module.functions();
  return std::any_of(functions.begin(), functions.end(), [&](const diagnose::Function& each) {
    return each.scope == 0 && each.name == name;
  });
}

// Each name of the test means the same beside the node: an import, a function of the file, self of
// the same class, a parameter of the same function.
bool means_the_same_at(const Program& program, Ref test, Ref node) {
  const auto& module = *test.module;
  const auto& tree = module.tree();
  for (NodeId at = test.node; at < tree[test.node].last; ++at) {
    if (tree[at].kind != Kind::identifier || tree[at].field == Field::attribute) continue;
    const Ref name = test.with(at);
    const bool same_function = program.enclosing_function(name) == program.enclosing_function(node);
    if (name.text() == "self") {
      const auto cls = program.enclosing_class(name);
      if (!cls || cls != program.enclosing_class(node)) return false;
    } else if (module.import_path(name.text()).empty() &&
               !is_function_of_file(module, name.text()) &&
               !(same_function && is_parameter(program, name))) {
      return false;
    }
  }
  return true;
}

// self.local_rank == 0, is_main_process(), self.is_main; not rank == 0 and epoch % 5 == 0.
bool is_plain_test(const Program& program, Ref test) {
  if (holds_any(test.text(), {"get_rank("}) && !has_group_test(test.text())) return false;
  switch (test.kind()) {
    case Kind::comparison:
      return facts::contains(test.text(), " in ") ||
             !may_be_no_rank(program, test.child(Field::left));
    case Kind::attribute:
    case Kind::identifier:
      return true;
    case Kind::boolean:
      return (*test.module)[test.node].op == diagnose::Op::logical_or;
    case Kind::call: {
      const CallRef call = program.as_call(test);
      const FunctionRef callee = call ? program.callee(call) : FunctionRef{};
      return call && !call.positional(0) && (!callee || is_callable_anywhere(callee));
    }
    default:
      return false;
  }
}

// The test that other lines of the file ask, where its names can be had here.
std::string test_in_sight(const Program& program, Ref node) {
  constexpr std::size_t kLongest = 60;
  for (const NodeId each : node.module->nodes_of(Kind::if_statement)) {
    const Ref test = node.with(each).child(Field::condition);
    if (test.text().size() > kLongest || contains(test.text(), "\n") ||
        program.rank_test(test) != diagnose::RankTest::main_only ||
        !means_the_same_at(program, test, node) || !is_plain_test(program, test))
      continue;
    return std::string(test.text());
  }
  return {};
}

// is_main_process() that the file imports or defines.
std::string helper_in_sight(const Program& program, Ref node) {
  for (const std::string_view name : {"is_main_process", "is_rank_zero", "is_master"}) {
    if (node.module->import_path(name).empty() && !is_function_of_file(*node.module, name))
      continue;
    const auto& functions = program.functions();
    const auto found =
        std::find_if(functions.begin(), functions.end(), [&](const FunctionRef& each) {
          return each.function->name == name && each.function->scope == 0;
        });
    if (found != functions.end() && is_callable_anywhere(*found)) return std::string(name) + "()";
  }
  return {};
}

// rank = dist.get_rank() above, in the function or at the file's own level.
std::string rank_variable(const Program& program, Ref node) {
  const auto& module = *node.module;
  for (const std::string_view name : kRanks) {
    bool is_bound = false;
    bool is_open = false;
    for (const std::uint32_t index : module.defs_of(name, false)) {
      const auto& def = module.defs()[index];
      const Ref value{&module, def.value};
      if (def.target >= node.node || (def.scope != 0 && def.scope != module.function_of(node.node)))
        continue;
      is_open = is_open || says_no_rank(value.text()) ||
                (def.scope == 0 && module.function_of(node.node) != 0 &&
                 module.under_main_guard(def.target));
      if (value.kind() == Kind::integer) continue;  // rank = 0, until it is known
      is_bound = is_bound || is_unconditional(program, node.with(def.target)) ||
                 runs_wherever(program, node.with(def.target), node);
    }
    if (is_bound && !is_open) return std::string(name) + " == 0";
  }
  return {};
}

bool stands_in_other_try(Ref above, Ref node) {
  const auto& tree = above.module->tree();
  const NodeId attempt = tree.ancestor(above.node, Kind::try_statement);
  return attempt != kNoNode && !tree.contains(attempt, node.node);
}

// dist.barrier() above in the same function: without a group the run ends there.
bool needs_group_above(const Program& program, Ref node) {
  const auto comes_first = [&](Ref above) {
    return above.module == node.module && above.node < node.node &&
           program.enclosing_function(above) == program.enclosing_function(node) &&
           runs_wherever(program, above, node) && !stands_in_other_try(above, node);
  };
  for (const Api api : {Api::init_process_group, Api::barrier, Api::get_rank, Api::get_world_size,
                        Api::all_reduce, Api::all_gather, Api::broadcast, Api::new_group})
    for (const CallRef& call : program.calls(api))
      if (comes_first(call.ref())) return true;
  return false;
}

bool is_surely_in_group(const Program& program, Ref node) {
  return needs_group_above(program, node) ||
         (node.module == &program.root() && joins_in_every_run(program) &&
          !is_imported_elsewhere(program, program.root()));
}

}  // namespace

std::string main_rank_condition(const Program& program, Ref node) {
  for (const auto find : {rank_parameter, test_in_sight, rank_variable, helper_in_sight})
    if (std::string found = find(program, node); !found.empty()) return found;
  const auto& module = *node.module;
  if (module.import_path("hvd") == "horovod.torch") return "hvd.rank() == 0";
  std::string group;
  for (const std::string_view alias : {"dist", "distributed"})
    if (group.empty() && module.import_path(alias) == "torch.distributed") group = alias;
  if (group.empty() && module.import_path("torch").empty()) return {};
  if (group.empty()) group = "torch.distributed";
  const std::string first = group + ".get_rank() == 0";
  if (is_surely_in_group(program, node)) return first;
  const std::string joined = group + ".is_initialized()";
  const std::string available = group + ".is_available()";
  return module.tree().holds(available) ? "not (" + available + " and " + joined + ") or " + first
                                        : "not " + joined + " or " + first;
}

}  // namespace bench::pitfalls::facts
