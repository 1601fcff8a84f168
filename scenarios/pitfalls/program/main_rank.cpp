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
  return std::any_of(sources.begin(), sources.end(), [&](const Source& source) {
    if (source.how != Source::How::argument) return says_no_rank(source.ref.text());
    const CallRef option = program.as_call(source.ref);  // None where it has no default
    const Ref usual = option ? option.keyword("default") : Ref{};
    return !usual || says_no_rank(usual.text());
  });
}

// for rank in range(3): the parameter is something else by then.
bool is_bound_in(const diagnose::Module& module, const diagnose::Function& function,
                 std::string_view name) {
  const auto& known = module.defs_of(name, false);
  return std::any_of(known.begin(), known.end(), [&](std::uint32_t index) {
    const auto& def = module.defs()[index];
    return def.kind != diagnose::DefKind::parameter &&
           module.tree().contains(function.node, def.target);
  });
}

// rank of def train(rank, world_size); not of def build(net, rank=None).
std::string rank_parameter(const Program& program, Ref node) {
  const FunctionRef here = program.enclosing_function(node);
  if (!here) return {};
  for (const auto& parameter : here.function->parameters) {
    if (std::find(kRanks.begin(), kRanks.end(), parameter.name) == kRanks.end() ||
        is_bound_in(*here.module, *here.function, parameter.name))
      continue;
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

// self.is_main and self.rank, given in the constructor of the class whose method the node stands
// in.
bool is_of_own_object(const Program& program, Ref test, Ref node) {
  const FunctionRef here = program.enclosing_function(node);
  const auto cls = program.enclosing_class(node);
  if (!here || !cls || here.function->owner_class == kNoNode || here.function->name == "__init__" ||
      here.function->parameters.empty() || here.function->parameters.front().name != "self")
    return false;
  const FunctionRef made = program.method(cls, "__init__");
  const auto& tree = test.module->tree();
  bool any = false;
  for (NodeId at = test.node; at < tree[test.node].last; ++at) {
    if (tree[at].kind != Kind::identifier || tree[at].field == Field::attribute) continue;
    if (tree.text(at) != "self" || program.enclosing_class(test) != cls) return false;
    const std::string_view name = test.with(tree[at].parent).child(Field::attribute).text();
    const auto& defs = program.attribute_defs(name);
    any = made && std::any_of(defs.begin(), defs.end(), [&](const diagnose::AttributeDef& def) {
            const Ref target{def.module, def.def->target};
            return program.enclosing_function(target) == made && is_unconditional(program, target);
          });
    if (!any) return false;
  }
  return any;
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
        !is_of_own_object(program, test, node) || !is_plain_test(program, test))
      continue;
    return std::string(test.text());
  }
  return {};
}

// def save(net, is_main_process): a name of something else somewhere in the file.
bool is_given_anew(const diagnose::Module& module, std::string_view name) {
  const auto& known = module.defs_of(name, false);
  return std::any_of(known.begin(), known.end(), [&](std::uint32_t index) {
    const auto kind = module.defs()[index].kind;
    return kind == diagnose::DefKind::parameter || kind == diagnose::DefKind::assign;
  });
}

// At the file's own level, not in a function.
bool is_imported_by_file(const diagnose::Module& module, std::string_view name) {
  const auto& tree = module.tree();
  for (NodeId at = tree[0].first_child; at != kNoNode; at = tree[at].next_sibling)
    if ((tree[at].kind == Kind::import_from || tree[at].kind == Kind::import_statement) &&
        contains(tree.text(at), name))
      return true;
  return false;
}

// is_main_process() that the file imports or defines.
std::string helper_in_sight(const Program& program, Ref node) {
  for (const std::string_view name : {"is_main_process", "is_rank_zero", "is_master"}) {
    const bool is_there =
        is_imported_by_file(*node.module, name) ||
        (is_function_of_file(*node.module, name) && program.enclosing_function(node));
    if (!is_there || is_given_anew(*node.module, name)) continue;
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

// dist.destroy_process_group() above in the same function.
bool has_left_group(const Program& program, Ref node) {
  const auto leaves = program.calls_named("destroy_process_group");
  return std::any_of(leaves.begin(), leaves.end(), [&](const CallRef& call) {
    return call.module == node.module && call.call->node < node.node &&
           program.enclosing_function(call.ref()) == program.enclosing_function(node);
  });
}

bool is_surely_in_group(const Program& program, Ref node) {
  if (has_left_group(program, node)) return false;
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
