// Control flow as far as rules need it: which conditions hold at a node and which loops run it
// (which of two nodes runs first: runs_before.cpp). Local calls are entered; recursion is bounded.
#include "diagnose/model/one_process.hpp"
#include "diagnose/model/program.hpp"
#include "diagnose/model/state_hooks.hpp"

#include <algorithm>
#include <set>

namespace bench::diagnose {
namespace {

constexpr int kCallDepth = 5;
constexpr std::size_t kMaxReached = 64;

bool leaves(const SyntaxTree& tree, NodeId statement) {
  switch (tree[statement].kind) {
    case Kind::return_statement:
    case Kind::raise_statement:
    case Kind::continue_statement:
    case Kind::break_statement:
      return true;
    case Kind::expression_statement: {
      const std::string_view text = tree.text(statement);
      return text.starts_with("sys.exit(") || text.starts_with("exit(") ||
             text.starts_with("os._exit(") || text.starts_with("quit(");
    }
    default:
      return false;
  }
}

// The last statement of an if's body leaves the block, so what follows runs when the test fails.
bool always_leaves(const SyntaxTree& tree, NodeId if_statement) {
  if (tree.child(if_statement, Field::alternative) != kNoNode) return false;
  const NodeId body = tree.child(if_statement, Field::consequence);
  if (body == kNoNode) return false;
  NodeId last = kNoNode;
  for (NodeId at = tree[body].first_child; at != kNoNode; at = tree[at].next_sibling) last = at;
  return last != kNoNode && leaves(tree, last);
}

// if __name__ == "__main__": holds in every run of the script, and what stands under it in other
// files never runs: there is nothing to choose.
bool is_main_guard(Ref condition) {
  const std::string_view text = condition.text();
  return condition.kind() == Kind::comparison && text.find("__name__") != std::string_view::npos &&
         text.find("__main__") != std::string_view::npos &&
         text.find("==") != std::string_view::npos;
}

void add_branch_guards(Ref node, NodeId parent, std::vector<Guard>& out) {
  const SyntaxTree& tree = node.module->tree();
  const Node& child = tree[node.node];
  const auto condition = [&](NodeId of) { return node.with(tree.child(of, Field::condition)); };
  switch (tree[parent].kind) {
    case Kind::if_statement:
      if (child.field == Field::consequence) {
        if (!is_main_guard(condition(parent))) out.push_back({condition(parent), true});
      } else if (child.field == Field::alternative) {
        for (NodeId at = tree[parent].first_child; at != node.node; at = tree[at].next_sibling)
          if (tree[at].kind == Kind::elif_clause) out.push_back({condition(at), false});
        out.push_back({condition(parent), false});
      }
      break;
    case Kind::elif_clause:
      if (child.field == Field::consequence) out.push_back({condition(parent), true});
      break;
    case Kind::while_statement:
      if (child.field == Field::body) out.push_back({condition(parent), true});
      break;
    case Kind::conditional: {
      const Ref test = node.with(tree.child_at(parent, 1));
      if (tree.child_at(parent, 0) == node.node) out.push_back({test, true});
      if (tree.child_at(parent, 2) == node.node) out.push_back({test, false});
      break;
    }
    case Kind::boolean:
      if (child.field == Field::right)
        out.push_back(
            {node.with(tree.child(parent, Field::left)), tree[parent].op == Op::logical_and});
      break;
    default:
      break;
  }
}

}  // namespace

std::vector<Guard> Program::guards(Ref node) const {
  std::vector<Guard> out;
  if (!node) return out;
  const SyntaxTree& tree = node.module->tree();
  for (NodeId at = node.node; at != 0 && at != kNoNode; at = tree[at].parent) {
    const Kind kind = tree[at].kind;
    if (kind == Kind::function || kind == Kind::class_definition) break;
    const NodeId parent = tree[at].parent;
    if (parent == kNoNode) break;
    add_branch_guards(node.with(at), parent, out);
    if (tree[parent].kind != Kind::block && tree[parent].kind != Kind::module) continue;
    for (NodeId before = tree[parent].first_child; before != at; before = tree[before].next_sibling)
      if (tree[before].kind == Kind::if_statement && always_leaves(tree, before))
        out.push_back({node.with(tree.child(before, Field::condition)), false});
  }
  return out;
}

bool Program::under(Ref node, const std::function<bool(Ref condition, bool holds)>& accepts) const {
  for (int depth = 0; depth < kCallDepth; ++depth) {
    for (const Guard& guard : guards(node))
      if (accepts(guard.condition, guard.holds)) return true;
    const FunctionRef function = enclosing_function(node);
    // What mp.spawn starts as well runs whatever holds where it is called.
    if (!function || runs_in_ranks(function)) return false;
    const auto& sites = call_sites(function);
    if (sites.size() != 1) return false;
    node = sites.front().ref();
  }
  return false;
}

namespace {

// `else` of `if rank:`: of a number the first rank alone comes there. The text of a variable of the
// environment is true for "0" as well, an option is a choice, and None is that of all ranks.
bool is_false_on_main_rank(const Program& program, Ref condition) {
  if (condition.kind() != Kind::identifier && condition.kind() != Kind::attribute) return false;
  if (program.is_spawn_rank(condition)) return true;
  if (!program.is_rank(condition) && !program.is_local_rank(condition)) return false;
  const auto& sources = program.sources(condition);
  return !sources.empty() && std::all_of(sources.begin(), sources.end(), [&](const Source& source) {
    const CallRef made = program.as_call(source.ref);
    return made && source.how == Source::How::value &&
           (made.call->api == Api::get_rank ||
            (made.call->name == "int" && !program.environment_name(source.ref).empty()));
  });
}

// Below `if distributed:`, with `if rank != 0: return` at its end: in runs of several processes.
RankTest tested_by_returns(const Program& program, Ref branch) {
  if (branch.kind() != Kind::if_statement) return RankTest::none;
  const SyntaxTree& tree = branch.module->tree();
  const NodeId block = tree.child(branch.node, Field::consequence);
  const Ref flag = branch.child(Field::condition);
  if (tree.child(branch.node, Field::alternative) != kNoNode || flag.kind() == Kind::comparison ||
      !program.is_distributed_flag(flag))
    return RankTest::none;
  for (NodeId at = tree[block].first_child; at != kNoNode; at = tree[at].next_sibling) {
    if (tree[at].kind != Kind::if_statement || !always_leaves(tree, at)) continue;
    const Ref asked = branch.with(tree.child(at, Field::condition));
    if (asked.kind() == Kind::comparison && program.rank_test(asked) == RankTest::not_main)
      return RankTest::main_only;
  }
  return RankTest::none;
}

// The same above the node, in a block around it.
RankTest tested_above(const Program& program, Ref node) {
  const SyntaxTree& tree = node.module->tree();
  for (NodeId at = node.node; at != 0 && at != kNoNode; at = tree[at].parent) {
    const NodeId parent = tree[at].parent;
    if (parent == kNoNode || tree[at].kind == Kind::function) break;
    if (tree[parent].kind != Kind::block && tree[parent].kind != Kind::module) continue;
    for (NodeId before = tree[parent].first_child; before != at; before = tree[before].next_sibling)
      if (const RankTest test = tested_by_returns(program, node.with(before));
          test != RankTest::none)
        return test;
  }
  return RankTest::none;
}

}  // namespace

RankTest Program::guarded_by_rank(Ref node) const { return guarded_by_rank(node, 0); }

RankTest Program::guarded_by_rank(Ref node, int depth) const {
  if (depth > kCallDepth) return RankTest::none;
  // if rank == 0: if best is None: ..., where best is what one rank alone has: all of them hold, so
  // the one that names the first rank counts.
  RankTest innermost = RankTest::none;
  for (const Guard& guard : guards(node)) {
    RankTest test = rank_test(guard.condition);
    if (test == RankTest::none && !guard.holds && is_false_on_main_rank(*this, guard.condition))
      return RankTest::main_only;
    if (test == RankTest::none) continue;
    if (!guard.holds && !negation_tells(guard.condition)) continue;
    if (!guard.holds) test = test == RankTest::main_only ? RankTest::not_main : RankTest::main_only;
    if (test == RankTest::main_only) return test;
    if (innermost == RankTest::none) innermost = test;
  }
  if (innermost == RankTest::none) innermost = tested_above(*this, node);
  if (innermost != RankTest::none) return innermost;
  const FunctionRef function = enclosing_function(node);
  return function ? callers_rank_test(function, depth) : RankTest::none;
}

// Asked again for every line of a function and along every chain of calls to it; what is found
// while a value's presence is tested may know less, so each nesting of that remembers for itself.
RankTest Program::callers_rank_test(FunctionRef function, int depth) const {
  const auto key = std::tuple(function.function, depth, testing_presence_);
  if (const auto known = callers_tested_.find(key); known != callers_tested_.end())
    return known->second;
  const RankTest test = find_callers_rank_test(function, depth);
  callers_tested_[key] = test;
  return test;
}

namespace {

// What both train() and eval() are called on without arguments: the mode of a module, and no method
// of the program that has the same name. Of other methods nothing.
std::set<std::string_view> modules_with_modes(const Program& program, std::string_view method) {
  std::set<std::string_view> out;
  if (method != "train" && method != "eval") return out;
  for (const CallRef& other : program.calls_named(method == "train" ? "eval" : "train"))
    if (other.receiver() && !other.positional(0)) out.insert(other.receiver().text());
  return out;
}

}  // namespace

// The calls that are known to lead to the function, or, for a method of which none is known, calls
// of its name.
const std::vector<CallRef>& Program::possible_call_sites(FunctionRef function) const {
  const auto known = possible_call_sites_.find(function.function);
  if (known != possible_call_sites_.end()) return known->second;
  std::vector<CallRef> sites = call_sites(function);
  // model.save(step), where the class of model is not known: calls of that name stand for it. The
  // __init__ of another class says nothing.
  if (sites.empty() && function.function->owner_class != kNoNode &&
      !function.function->makes_object()) {
    const auto modes = modules_with_modes(*this, function.function->name);
    for (const CallRef& call : calls_named(function.function->name))
      if (const Ref object = call.receiver();
          object && object.text() != "self" &&
          qualified({call.module, call.call->function}).empty() && wrap_of(object) == nullptr &&
          !(modes.contains(object.text()) && !call.positional(0)))
        sites.push_back(call);
  }
  if (sites.empty()) sites = runs_of_state_hook(*this, function);
  return possible_call_sites_[function.function] = std::move(sites);
}

namespace {

// __call__ and its kin, and a module's forward(): model(x) runs it without its name.
bool is_run_through_object(const Function& function) {
  return function.owner_class != kNoNode &&
         (function.name.starts_with("__") || function.name == "forward");
}

}  // namespace

RankTest Program::find_callers_rank_test(FunctionRef function, int depth) const {
  if (rank_zero_decorated(function)) return RankTest::main_only;
  const std::vector<CallRef>& sites = possible_call_sites(function);
  if (sites.empty()) return handed_on_rank_test(function, depth);
  // A call for runs of one process, or in a function that nobody calls, says nothing.
  const auto counts = [&](const CallRef& site) {
    if (is_of_one_process(*this, site.ref())) return false;
    const FunctionRef caller = enclosing_function(site.ref());
    return sites.size() == 1 || !caller || is_spawned(caller) || !call_sites(caller).empty() ||
           is_run_through_object(*caller.function);
  };
  RankTest agreed = RankTest::none;
  for (const CallRef& site : sites) {
    // A function that calls itself runs where others call it.
    if (enclosing_function(site.ref()) == function || !counts(site)) continue;
    const RankTest test = guarded_by_rank(site.ref(), depth + 1);
    // One call by all ranks settles it: most functions of a library have many callers.
    if (test == RankTest::none || (agreed != RankTest::none && agreed != test))
      return RankTest::none;
    agreed = test;
  }
  if (agreed == RankTest::none) return RankTest::none;
  // Whoever is given the function may call it, too: study.optimize(objective).
  if (function.function->owner_class != kNoNode || is_spawned(function)) return agreed;
  const auto places = handed_on(function);
  const bool same = std::all_of(places.begin(), places.end(), [&](const Ref& place) {
    return is_state_hook(*this, place) || guarded_by_rank(place, depth + 1) == agreed;
  });
  return same ? agreed : RankTest::none;
}

namespace {

// def main_only(function): ... if rank == 0: return function(*args), or below if rank != 0: return:
// a decorator of this program.
bool guards_on_rank(const Program& program, FunctionRef decorator) {
  if (!decorator || decorator.function->parameters.empty()) return false;
  const std::string_view wrapped = decorator.function->parameters.front().name;
  for (const CallRef& call : program.calls_named(wrapped)) {
    if (call.module != decorator.module ||
        !call.module->tree().contains(decorator.function->node, call.call->node))
      continue;
    for (const Guard& guard : program.guards(call.ref()))
      if (program.rank_test(guard.condition) ==
          (guard.holds ? RankTest::main_only : RankTest::not_main))
        return true;
  }
  return false;
}

}  // namespace

namespace {

bool joins_by(Ref condition, Op op) {
  return condition.kind() == Kind::boolean && condition.module->tree()[condition.node].op == op;
}

bool is_conjunction(Ref condition) { return joins_by(condition, Op::logical_and); }

// rank is not None, rank != -1, rank >= 0: there are ranks at all.
bool asks_for_any_rank(const Program& program, Ref condition) {
  const SyntaxTree& tree = condition.module->tree();
  if (condition.kind() != Kind::comparison || tree.child_count(condition.node) != 2) return false;
  const Ref left = condition.with(tree.child_at(condition.node, 0));
  const Ref right = condition.with(tree.child_at(condition.node, 1));
  if (!program.is_rank(left) && !program.is_local_rank(left)) return false;
  const Op op = tree[condition.node].op;
  if (right.kind() == Kind::none_literal) return op == Op::is_not || op == Op::not_equal;
  const auto number = program.integer(right);
  return (number == -1 && (op == Op::not_equal || op == Op::greater)) ||
         (number == 0 && op == Op::greater_equal);
}

}  // namespace

// @rank_zero_only, @on_main_process and their kin.
bool Program::rank_zero_decorated(FunctionRef function) const {
  const SyntaxTree& tree = function.module->tree();
  const NodeId parent = tree[function.function->node].parent;
  if (parent == kNoNode || tree[parent].kind != Kind::decorated) return false;
  for (NodeId at = tree[parent].first_child; at != kNoNode; at = tree[at].next_sibling) {
    if (tree[at].kind != Kind::decorator) continue;
    const std::string_view text = tree.text(at);
    for (const std::string_view word : {"rank_zero", "main_process", "master_only", "rank0"})
      if (text.find(word) != std::string_view::npos) return true;
    for (const Source& source : sources({function.module, tree[at].first_child}))
      if (source.ref.kind() == Kind::function &&
          guards_on_rank(*this,
                         {source.ref.module, source.ref.module->function_at(source.ref.node)}))
        return true;
  }
  return false;
}

// `not (A and rank == 0)` is a test of the rank only where A says that the job is distributed.
// Where `A or B` does not hold, neither does: the part that asks for the rank has to tell.
bool Program::negation_tells(Ref condition) const {
  if (condition.kind() == Kind::identifier) return absence_tells(condition, 0);
  if (joins_by(condition, Op::logical_or)) {
    const auto tells = [&](Field side) {
      const Ref part = condition.child(side);
      return rank_test(part) != RankTest::none && negation_tells(part);
    };
    return tells(Field::left) || tells(Field::right);
  }
  return !is_conjunction(condition) || conjuncts_tell(condition);
}

bool Program::conjuncts_tell(Ref conjunction) const {
  for (const Field side : {Field::left, Field::right}) {
    const Ref part = conjunction.child(side);
    if (is_conjunction(part)) {
      if (!conjuncts_tell(part)) return false;
      continue;
    }
    if (rank_test(part) != RankTest::none || asks_for_any_rank(*this, part)) continue;
    const Op op = part.module->tree()[part.node].op;
    // `num_gpus == 1` and `not distributed` say the opposite.
    const bool negative = part.kind() == Kind::not_expression || op == Op::equal ||
                          op == Op::less || op == Op::less_equal || op == Op::is;
    if (negative || !is_distributed_flag(part)) return false;
  }
  return true;
}

Ref Program::rank_guard(Ref node) const {
  for (const Guard& guard : guards(node))
    if (rank_test(guard.condition) != RankTest::none &&
        (guard.holds || negation_tells(guard.condition)))
      return guard.condition;
  return {};
}

Ref Program::enclosing_with(Ref node, const std::function<bool(Ref item)>& accepts) const {
  const SyntaxTree& tree = node.module->tree();
  for (NodeId at = tree[node.node].parent; at != kNoNode; at = tree[at].parent) {
    if (tree[at].kind == Kind::function || tree[at].kind == Kind::class_definition) break;
    if (tree[at].kind != Kind::with_statement) continue;
    for (NodeId item = tree[at].first_child; item != kNoNode; item = tree[item].next_sibling) {
      if (tree[item].kind != Kind::with_item) continue;
      NodeId expression = tree[item].first_child;
      if (expression != kNoNode && tree[expression].kind == Kind::as_pattern)
        expression = tree[expression].first_child;
      if (expression != kNoNode && accepts(node.with(expression))) return node.with(at);
    }
  }
  return {};
}

bool Program::under_no_grad(Ref node) const {
  const auto is_no_grad = [&](Ref item) {
    const CallRef call = as_call(item);
    return (call && call.call->api == Api::no_grad) || item.module->api(item.node) == Api::no_grad;
  };
  if (enclosing_with(node, is_no_grad)) return true;
  const SyntaxTree& tree = node.module->tree();
  for (NodeId at = tree[node.node].parent; at != kNoNode; at = tree[at].parent) {
    if (tree[at].kind != Kind::decorated) continue;
    for (NodeId child = tree[at].first_child; child != kNoNode; child = tree[child].next_sibling) {
      if (tree[child].kind != Kind::decorator) continue;
      const NodeId expression = tree[child].first_child;
      const CallRef call = as_call(node.with(expression));
      if ((call && call.call->api == Api::no_grad) || node.module->api(expression) == Api::no_grad)
        return true;
    }
  }
  return false;
}

Ref Program::innermost_loop(Ref node) const {
  const SyntaxTree& tree = node.module->tree();
  for (NodeId at = node.node; at != kNoNode && at != 0; at = tree[at].parent) {
    const Kind kind = tree[at].kind;
    if (kind == Kind::function || kind == Kind::class_definition) break;
    const NodeId parent = tree[at].parent;
    if (parent == kNoNode || tree[at].field != Field::body) continue;
    if (tree[parent].kind == Kind::for_statement || tree[parent].kind == Kind::while_statement)
      return node.with(parent);
  }
  return {};
}

std::vector<Ref> Program::loops_around(Ref node) const {
  std::vector<Ref> out;
  for (int depth = 0; depth < kCallDepth; ++depth) {
    for (Ref loop = innermost_loop(node); loop; loop = innermost_loop(loop)) out.push_back(loop);
    const FunctionRef function = enclosing_function(node);
    if (!function) break;
    const auto& sites = call_sites(function);
    if (sites.empty()) break;
    // With several callers, one that loops is the one that matters.
    const auto looping = std::find_if(sites.begin(), sites.end(), [&](const CallRef& site) {
      return static_cast<bool>(innermost_loop(site.ref()));
    });
    node = (looping == sites.end() ? sites.front() : *looping).ref();
  }
  return out;
}

std::vector<FunctionRef> Program::reached(Ref subtree) const {
  std::vector<FunctionRef> out;
  std::vector<std::pair<Ref, int>> pending{{subtree, 0}};
  const auto add = [&](FunctionRef function, int depth) {
    if (!function || std::find(out.begin(), out.end(), function) != out.end()) return;
    out.push_back(function);
    pending.push_back({{function.module, function.function->body}, depth + 1});
  };
  while (!pending.empty() && out.size() < kMaxReached) {
    const auto [at, depth] = pending.back();
    pending.pop_back();
    if (depth >= kCallDepth) continue;
    const auto& calls = at.module->calls();
    const NodeId last = at.module->tree()[at.node].last;
    auto call = std::lower_bound(calls.begin(), calls.end(), at.node,
                                 [](const Call& c, NodeId id) { return c.node < id; });
    for (; call != calls.end() && call->node < last; ++call) {
      const CallRef made{at.module, &*call};
      for (const FunctionRef& each : callees(made)) add(each, depth);
      if (made.receiver().text() != "self") continue;
      const ClassRef owner = enclosing_class(made.ref());
      if (!owner || derived_of(owner).empty()) continue;
      for (const ClassRef& derived : derived_in_use(owner))
        add({derived.module, derived.module->method(*derived.cls, call->name)}, depth);
    }
  }
  return out;
}

bool Program::subtree_calls(Ref subtree, const std::function<bool(CallRef)>& accepts) const {
  const auto any_in = [&](Ref at) {
    if (!at) return false;
    const auto& calls = at.module->calls();
    const NodeId last = at.module->tree()[at.node].last;
    auto call = std::lower_bound(calls.begin(), calls.end(), at.node,
                                 [](const Call& c, NodeId id) { return c.node < id; });
    for (; call != calls.end() && call->node < last; ++call)
      if (accepts({at.module, &*call})) return true;
    return false;
  };
  if (any_in(subtree)) return true;
  for (const FunctionRef& function : reached(subtree))
    if (any_in({function.module, function.function->body})) return true;
  return false;
}

}  // namespace bench::diagnose
