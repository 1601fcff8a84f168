#include "scenarios/pitfalls/wrappers/wrapped_above.hpp"

#include "diagnose/model/made_at.hpp"
#include "scenarios/pitfalls/program/words.hpp"
#include "scenarios/pitfalls/reach/order.hpp"
#include "scenarios/pitfalls/reach/unconditional.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Def;
using diagnose::Field;
using diagnose::Guard;
using diagnose::Kind;
using diagnose::kNoNode;
using diagnose::Module;
using diagnose::NodeId;
using diagnose::Wrap;

namespace {

// args.optimizer == "sgd" has nothing to do with the option that wraps: it speaks neither of that
// nor of devices.
bool is_another_option(Ref condition, const std::vector<Guard>& around) {
  if (says_any(condition.text(), {"attr", "isinstance", "dist", "parallel", "gpu", "cuda", "device",
                                  "rank", "world", "dp", "multi", "single", "module", "wrap"}))
    return false;
  const auto& tree = condition.module->tree();
  for (NodeId at = condition.node; at < tree[condition.node].last; ++at) {
    if (tree[at].kind != Kind::identifier || tree[at].field == Field::object) continue;
    for (const Guard& other : around)
      if (facts::contains(other.condition.text(), tree.text(at))) return false;
  }
  return true;
}

// The receiver of model.to(device), model.cuda(), model.train(), which give the model back.
Ref moved(const Program& program, Ref value) {
  const CallRef call = program.as_call(value);
  if (!call || !call.receiver() || !program.qualified(call.ref().child(Field::function)).empty())
    return {};
  for (const std::string_view name : {"to", "cuda", "train", "eval", "half", "float"})
    if (call.call->name == name) return call.receiver();
  return {};
}

// The wrapper is made in the value, or by the function of the program that the value calls.
bool makes(const Program& program, Ref value, const Wrap& wrap) {
  const Ref made = wrap.call.ref();
  // parallel(net).cuda()
  if (const Ref below = moved(program, value); below && below.kind() == Kind::call) value = below;
  if (!value) return false;
  if (value.module == made.module && value.module->tree().contains(value.node, made.node))
    return true;
  const CallRef call = program.as_call(value);
  const auto helper = call ? program.callee(call) : diagnose::FunctionRef{};
  return helper &&
         (helper == program.enclosing_function(made) ||
          diagnose::made_at(program, wrap.call).ref() == value ||
          helper == program.enclosing_function(diagnose::made_at(program, wrap.call).ref()));
}

}  // namespace

namespace {

bool is_wrapped_by_names(const Program& program, Ref use, Ref object, int depth) {
  constexpr int kMostNames = 3;  // that the model has in turn
  if (depth > kMostNames || !diagnose::stands_for_object(object)) return false;
  const Wrap* wrap = program.wrap_of(object);
  if (wrap == nullptr) return false;
  // The else that does not wrap says nothing here.
  const auto counts = [&](const Def& each) {
    return wrap->call.module != use.module ||
           !never_both(program, use.with(each.target), wrap->call.ref());
  };
  const Def* def = last_value_above(object, counts);
  // model = model.to(device) below the wrapping.
  constexpr int kMoves = 3;
  for (int depth = 0; def != nullptr && depth < kMoves; ++depth) {
    const Ref below = moved(program, use.with(def->value));
    if (!below || below.text() != object.text() ||
        !is_unconditional(program, use.with(def->target)))
      break;
    def = last_value_above(use.with(def->target), counts);
  }
  // model = net.cuda() below `if several: net = DataParallel(net)`.
  const Ref renamed = def != nullptr ? moved(program, use.with(def->value)) : Ref{};
  if (renamed && renamed.kind() == Kind::identifier && renamed.text() != object.text() &&
      is_unconditional(program, use.with(def->target)))
    return is_wrapped_by_names(program, use, renamed, depth + 1);
  if (def == nullptr || !makes(program, use.with(def->value), *wrap) ||
      facts::exclusive(use, use.with(def->target)))
    return false;
  auto around = diagnose::guards_where_made(program, wrap->call);
  for (const Guard& guard : program.guards(use.with(def->target))) around.push_back(guard);
  const auto guards = program.guards(use);
  return std::all_of(guards.begin(), guards.end(), [&](const Guard& guard) {
    return program.rank_test(guard.condition) != diagnose::RankTest::none ||  // some rank comes by
           is_another_option(guard.condition, around) ||
           std::find(around.begin(), around.end(), guard) != around.end();
  });
}

}  // namespace

bool is_wrapped_above(const Program& program, Ref use, Ref object) {
  return is_wrapped_by_names(program, use, object, 0);
}

namespace {

// The conditions around the node that are not around the use as well.
std::vector<Guard> guards_of_its_own(const Program& program, Ref node, Ref use) {
  auto own = program.guards(node);
  const auto shared = program.guards(use);
  std::erase_if(own, [&](const Guard& guard) {
    return std::find(shared.begin(), shared.end(), guard) != shared.end();
  });
  return own;
}

// net = self.model, and either side of self.average if use_average else self.model.
bool gives_wrapper(Ref value, const std::function<bool(Ref value)>& holds) {
  if (value.kind() != Kind::conditional) return diagnose::stands_for_object(value) && holds(value);
  const auto& tree = value.module->tree();
  const auto side = [&](std::size_t index) { return value.with(tree.child_at(value.node, index)); };
  return is_another_option(side(1), {}) &&
         (gives_wrapper(side(0), holds) || gives_wrapper(side(2), holds));
}

}  // namespace

namespace {

// net = net.module, unwrap(net), getattr(net, "module", net): what is inside, if anything.
bool takes_wrapper_off(Ref value) {
  const std::string_view text = value.text();
  return facts::contains(text, ".module") || facts::contains(text, "\"module\"") ||
         facts::contains(text, "'module'") || says_any(text, {"unwrap"});
}

bool assigns_within(const Module& module, std::string_view name, NodeId branch) {
  const auto& indices = module.defs_of(name, false);
  return branch != kNoNode &&
         std::any_of(indices.begin(), indices.end(), [&](const std::uint32_t index) {
           return module.tree().contains(branch, module.defs()[index].target);
         });
}

// if a: net = x elif b: net = y else: net = z: what the name was before is gone below.
bool every_branch_assigns(const Module& module, std::string_view name, NodeId test) {
  const auto& tree = module.tree();
  bool has_else = false;
  for (NodeId at = tree[test].first_child; at != kNoNode; at = tree[at].next_sibling) {
    const Kind kind = tree[at].kind;
    if (kind != Kind::else_clause && kind != Kind::elif_clause && kind != Kind::block) continue;
    if (!assigns_within(module, name, at)) return false;
    has_else = has_else || kind == Kind::else_clause;
  }
  return has_else;
}

// The outermost statement around the target, apart from the use, in which every way assigns the
// name; empty where there is none.
NodeId replaced_by(const Module& module, std::string_view name, NodeId target, NodeId use) {
  const auto& tree = module.tree();
  NodeId out = kNoNode;
  for (NodeId at = tree[target].parent; at != kNoNode && !tree.contains(at, use);
       at = tree[at].parent)
    if (tree[at].kind == Kind::if_statement && every_branch_assigns(module, name, at)) out = at;
  return out;
}

}  // namespace

bool is_wrapped_in_one_branch(const Program& program, Ref object,
                              const std::function<bool(Ref value)>& holds) {
  if (object.kind() != Kind::identifier) return false;
  const auto& module = *object.module;
  const auto& indices = module.defs_of(object.text(), false);
  NodeId first = 0;  // what stands before it is replaced on every way
  for (auto index = indices.rbegin(); index != indices.rend(); ++index) {
    const Def& def = module.defs()[*index];
    const Ref target = object.with(def.target);
    if (def.target < first) return false;
    if (def.target >= object.node ||
        module.function_of(def.target) != module.function_of(object.node) ||
        facts::exclusive(target, object))
      continue;
    if (def.kind != diagnose::DefKind::assign || def.element >= 0) return false;
    const auto own = guards_of_its_own(program, target, object);
    if (!std::all_of(own.begin(), own.end(),
                     [](const Guard& guard) { return is_another_option(guard.condition, {}); }))
      return false;
    if (gives_wrapper(object.with(def.value), holds)) return true;
    if (own.empty() || takes_wrapper_off(object.with(def.value))) return false;
    const NodeId branches = replaced_by(module, object.text(), def.target, object.node);
    if (branches != kNoNode) first = std::max(first, branches);
  }
  return false;
}

}  // namespace bench::pitfalls
