#include "scenarios/pitfalls/data/left_out_sampler.hpp"

#include "diagnose/model/made_at.hpp"
#include "diagnose/model/role_names.hpp"
#include "scenarios/pitfalls/reach/switches.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::FunctionRef;
using diagnose::Guard;
using diagnose::Kind;
using diagnose::kNoNode;

namespace {

constexpr int kHelperCallers = 4;

// get_loaders(32, distributed=False), or no word about it where that is the default; the same of
// `if distributed and size > 1` and a size that is 1.
bool says_no(const Program& program, FunctionRef maker, const facts::Switches& switches,
             const CallRef& site) {
  facts::Switches outer;
  return !site.has_splat() && facts::is_switched_off_by(program, maker, switches, site, outer);
}

// What makes the loaders for the loop is the nearest function around it, or above that, which calls
// the maker: every such function says no.
bool every_way_says_no(const Program& program, FunctionRef maker, const facts::Switches& switches,
                       FunctionRef user, int depth) {
  bool makes = false;
  for (const CallRef& site : program.call_sites(maker)) {
    if (program.enclosing_function(site.ref()) != user) continue;
    if (!says_no(program, maker, switches, site)) return false;
    makes = true;
  }
  if (makes) return true;
  if (!user || depth > kHelperCallers || program.is_spawned(user)) return false;
  const auto& callers = program.call_sites(user);
  return !callers.empty() &&
         std::all_of(callers.begin(), callers.end(), [&](const CallRef& caller) {
           return every_way_says_no(program, maker, switches,
                                    program.enclosing_function(caller.ref()), depth + 1);
         });
}

// `split == "train"`, `is_train`: whether the condition, where it holds, means training.
bool means_training(Ref condition, bool holds, int depth = 0) {
  constexpr int kDeepest = 64;
  if (!condition || depth > kDeepest) return false;
  const std::string text = diagnose::lowered(condition.text());
  if (condition.kind() == Kind::not_expression)
    return means_training(condition.child(diagnose::Field::argument), !holds, depth + 1);
  if (condition.kind() == Kind::identifier || condition.kind() == Kind::attribute) {
    const std::string name = diagnose::lowered(diagnose::last_word(condition));
    return holds &&
           (name == "train" || name == "training" || name == "is_train" || name == "is_training");
  }
  if (condition.kind() == Kind::boolean) {  // distributed and split == "train"
    const bool is_and = condition.module->tree()[condition.node].op == diagnose::Op::logical_and;
    return is_and == holds &&
           (means_training(condition.child(diagnose::Field::left), holds, depth + 1) ||
            means_training(condition.child(diagnose::Field::right), holds, depth + 1));
  }
  if (condition.kind() != Kind::comparison) return false;
  const bool quoted =
      text.find("'train") != std::string::npos || text.find("\"train") != std::string::npos;
  const diagnose::Op op = condition.module->tree()[condition.node].op;
  return quoted &&
         ((op == diagnose::Op::equal && holds) || (op == diagnose::Op::not_equal && !holds));
}

}  // namespace

bool is_sampler_of_training(const Program& program, const CallRef& loader, const CallRef& sampler) {
  const auto accepts = [&](Ref node) {
    const auto guards = program.guards(node);
    return std::any_of(guards.begin(), guards.end(), [](const Guard& guard) {
      return means_training(guard.condition, guard.holds);
    });
  };
  if (accepts(loader.ref()) || accepts(diagnose::made_at(program, sampler).ref())) return true;
  const Ref given = loader.argument(3, "sampler");
  if (given.kind() != Kind::conditional) return false;
  const auto& tree = given.module->tree();
  if (tree.child_count(given.node) != 3) return false;  // text that is cut off
  const Ref test = given.with(tree.child_at(given.node, 1));
  const auto is_none = [&](std::size_t child) {
    return tree[tree.child_at(given.node, child)].kind == Kind::none_literal;
  };
  return (is_none(2) && means_training(test, true)) || (is_none(0) && means_training(test, false));
}

bool is_sampler_left_out(const Program& program, Ref loop, const CallRef& sampler) {
  const CallRef made = diagnose::made_at(program, sampler);
  const FunctionRef maker = program.enclosing_function(made.ref());
  if (!maker || maker.function->owner_class != kNoNode) return false;
  const auto switches = facts::switches_around(program, maker, made.ref());
  return !switches.empty() &&
         every_way_says_no(program, maker, switches, program.enclosing_function(loop), 0);
}

}  // namespace bench::pitfalls
