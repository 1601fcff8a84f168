#include "scenarios/pitfalls/ranks/open_guards.hpp"

#include "diagnose/model/role_names.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

namespace bench::pitfalls {

using diagnose::Field;
using diagnose::Guard;
using diagnose::Kind;
using diagnose::NodeId;
using diagnose::Op;
using diagnose::RankTest;

namespace {

constexpr int kCallers = 6;
constexpr int kPlaces = 256;  // looked at for one node, on all ways that lead to it

// Names in the expression, of objects by what is asked of them: ckpt_type, fsdp_enabled.
void add_names(Ref expression, std::vector<std::string_view>& names) {
  const auto& tree = expression.module->tree();
  for (NodeId at = expression.node; at < tree[expression.node].last; ++at)
    if (tree[at].kind == Kind::identifier) names.push_back(tree.text(at));
}

// The last of them: that of the flag in `self.task._sharded`.
std::string_view last_name(Ref expression) {
  std::vector<std::string_view> names;
  add_names(expression, names);
  const std::string_view last = names.empty() ? std::string_view{} : names.back();
  return last.substr(std::min(last.find_first_not_of('_'), last.size()));
}

void add_disjuncts(Ref condition, std::vector<Ref>& out) {
  const auto& tree = condition.module->tree();
  if (condition.kind() != Kind::boolean || tree[condition.node].op != Op::logical_or) {
    out.push_back(condition);
    return;
  }
  add_disjuncts(condition.child(Field::left), out);
  add_disjuncts(condition.child(Field::right), out);
}

bool shares_name(Ref disjunct, const std::vector<std::string_view>& names) {
  std::vector<std::string_view> own;
  add_names(disjunct, own);
  if (own.empty()) return false;
  const bool compares = disjunct.kind() == Kind::comparison;
  const std::string_view flag = compares ? own.front() : last_name(disjunct);
  return std::any_of(names.begin(), names.end(), [&](std::string_view name) {
    return name.ends_with(flag) && flag.size() > 2;
  });
}

// rank == 0 or args.distributed: all ranks come by where there are several.
bool is_flag_of_several(const Program& program, Ref disjunct) {
  const std::string_view name = diagnose::last_word(disjunct);
  for (const std::string_view denial : {"no_", "not_", "non_", "disable"})
    if (name.starts_with(denial)) return false;
  return (disjunct.kind() == Kind::identifier || disjunct.kind() == Kind::attribute) &&
         program.is_distributed_flag(disjunct) && program.rank_test(disjunct) == RankTest::none;
}

bool lets_in(const Program& program, const Guard& guard,
             const std::vector<std::string_view>& asked) {
  if (!guard.holds) return false;
  std::vector<Ref> disjuncts;
  add_disjuncts(guard.condition, disjuncts);
  if (disjuncts.size() > 1 && std::any_of(disjuncts.begin(), disjuncts.end(), [&](Ref each) {
        return is_flag_of_several(program, each);
      }))
    return true;
  return disjuncts.size() > 1 && std::any_of(disjuncts.begin(), disjuncts.end(), [&](Ref each) {
           // `not several_gpus or rank == 0` lets all in where there is one rank.
           return each.kind() != Kind::not_expression && !program.is_distributed_flag(each) &&
                  program.rank_test(each) == RankTest::none && shares_name(each, asked);
         });
}

bool lets_all_in(const Program& program, Ref node, std::vector<std::string_view> asked, int depth,
                 int& places) {
  if (++places > kPlaces) return false;
  const auto guards = program.guards(node);
  for (const Guard& guard : guards) {
    std::vector<Ref> disjuncts;
    add_disjuncts(guard.condition, disjuncts);
    if (disjuncts.size() == 1) add_names(guard.condition, asked);
  }
  for (const Guard& guard : guards)
    if (lets_in(program, guard, asked)) return true;
  const auto function = program.enclosing_function(node);
  if (!function || depth >= kCallers) return false;
  const auto& sites = program.call_sites(function);
  return std::any_of(sites.begin(), sites.end(), [&](const CallRef& site) {
    return lets_all_in(program, site.ref(), asked, depth + 1, places);
  });
}

// The line counts a name of the file up or down: depth += 1.
bool counts_name_of_file(const diagnose::Module& module, const diagnose::Def& def) {
  return def.kind == diagnose::DefKind::augmented &&
         (def.scope == 0 ||
          module.text(module.function_of(def.target)).find("global ") != std::string_view::npos);
}

// depth > 0, where `depth` is a name of the file that something counts up and down; one that is
// counted up alone, step += 1, is the same on all ranks.
bool asks_counter(Ref expression) {
  const diagnose::Module& module = *expression.module;
  const auto& tree = module.tree();
  for (NodeId at = expression.node; at < tree[expression.node].last; ++at) {
    if (tree[at].kind != Kind::identifier) continue;
    bool at_top = false;
    bool up = false;
    bool down = false;
    for (const std::uint32_t index : module.defs_of(tree.text(at), false)) {
      const diagnose::Def& def = module.defs()[index];
      at_top = at_top || (def.scope == 0 && def.kind == diagnose::DefKind::assign);
      if (!counts_name_of_file(module, def)) continue;
      const std::string_view line = tree.text(tree[def.target].parent);
      up = up || line.find("+=") != std::string_view::npos;
      down = down || line.find("-=") != std::string_view::npos;
    }
    if (at_top && up && down) return true;
  }
  return false;
}

}  // namespace

bool is_let_out_by_counter(const Program& program, Ref node) {
  const auto guards = program.guards(node);
  return std::any_of(guards.begin(), guards.end(), [&](const Guard& guard) {
    if (asks_counter(guard.condition)) return true;
    const auto helper = program.callee(program.as_call(guard.condition));
    return helper && std::any_of(helper.function->returns.begin(), helper.function->returns.end(),
                                 [&](NodeId value) {
                                   return asks_counter({helper.module, value});
                                 });
  });
}

bool lets_all_in(const Program& program, Ref node) {
  int places = 0;
  return lets_all_in(program, node, {}, 0, places);
}

}  // namespace bench::pitfalls
