#include "scenarios/pitfalls/own_copy.hpp"

#include "scenarios/pitfalls/facts.hpp"
#include "scenarios/pitfalls/words.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Field;
using diagnose::FunctionRef;
using diagnose::Kind;
using diagnose::NodeId;

namespace {

// One reduction of `own` into `reduced` at `call`.
struct ReducedCopy {
  Ref call;
  std::string own;
  std::string reduced;
  bool is_apart = false;  // what is reduced is a tensor of its own: `own` stays as it was
};

bool makes_copy(std::string_view text) {
  return holds_any(text, {"tensor(", "Tensor(", ".clone()", "deepcopy("});
}

// torch.tensor(loss), loss.clone(), loss.cuda(): the one variable that the value holds; empty where
// it holds several or computes something.
std::string variable_held(Ref value) {
  const VariableNames names = variables_in(value);
  std::string found;
  for (const std::string& name : names) {
    if (says_any(name, {"device", "rank", "world", "gpu"}) ||
        !value.module->import_path(name).empty())
      continue;
    if (!found.empty()) return {};
    found = name;
  }
  return found;
}

class CopiesIn {
 public:
  CopiesIn(const Program& program, FunctionRef function, const std::vector<Reduction>& reductions)
      : program_(program),
        function_(function),
        reductions_(reductions),
        body_{function.module, function.function->body},
        assigned_(assignments_in(body_)) {}

  std::vector<ReducedCopy> find() {
    for (const CallRef& call : facts::calls_in(body_)) {
      if (program_.enclosing_function(call.ref()) != function_ || !reduces(call)) continue;
      if (const std::string target = target_of(call); !target.empty())
        add_returned(call, target);
      else
        add_in_place(call);
    }
    return std::move(out_);
  }

 private:
  bool reduces(const CallRef& call) const {
    if (std::any_of(reductions_.begin(), reductions_.end(),
                    [&](const Reduction& each) { return each.call == call.ref(); }))
      return call.call->api != diagnose::Api::broadcast;
    const FunctionRef helper = program_.callee(call);
    return helper && says_any(helper.function->name, {"reduce", "average", "mean", "gather"}) &&
           std::any_of(reductions_.begin(), reductions_.end(), [&](const Reduction& each) {
             return program_.enclosing_function(each.call) == helper;
           });
  }

  // reduced in reduced = reduce(loss).item().
  std::string target_of(const CallRef& call) const {
    const auto& tree = body_.module->tree();
    for (const Assigned& each : assigned_)
      if (tree.contains(each.value.node, call.call->node)) return each.name;
    return {};
  }

  void add_returned(const CallRef& call, const std::string& target) {
    const Ref given = call.positional(0);
    const std::string own = given ? variable_held(given) : std::string{};
    if (!own.empty() && own != target)
      out_.push_back({call.ref(), own, target, makes_copy(given.text())});
  }

  // t = torch.tensor(loss); dist.all_reduce(t).
  void add_in_place(const CallRef& call) {
    const Ref given = call.positional(0);
    if (!given || given.kind() != Kind::identifier) return;
    const Assigned* made = nullptr;
    for (const Assigned& each : assigned_)
      if (each.name == given.text() && each.target < call.call->node) made = &each;
    if (made == nullptr || !makes_copy(made->value.text())) return;
    const std::string own = variable_held(made->value);
    if (!own.empty() && own != made->name) out_.push_back({call.ref(), own, made->name, true});
  }

  const Program& program_;
  FunctionRef function_;
  const std::vector<Reduction>& reductions_;
  Ref body_;
  std::vector<Assigned> assigned_;
  std::vector<ReducedCopy> out_;
};

bool is_plateau_step(const Program& program, const CallRef& call) {
  if (call.call->name != "step" || !call.receiver()) return false;
  const auto sources = program.sources(call.receiver());
  return std::any_of(sources.begin(), sources.end(), [&](const diagnose::Source& source) {
    const CallRef made = program.as_call(source.ref);
    return made && made.call->name == "ReduceLROnPlateau";
  });
}

// best = loss under `if loss < best`.
bool keeps_best(Ref test, std::string_view own) {
  const Ref condition = test.child(Field::condition);
  const auto& tree = test.module->tree();
  for (const NodeId node : test.module->nodes_of(Kind::comparison)) {
    if (!tree.contains(condition.node, node)) continue;
    const Ref left = test.with(tree.child_at(node, 0));
    const Ref right = test.with(tree.child_at(node, 1));
    if (!left || !right || (left.text() == own) == (right.text() == own)) continue;
    const std::string_view best = left.text() == own ? right.text() : left.text();
    for (const NodeId set : test.module->nodes_of(Kind::assignment))
      if (tree.contains(test.node, set) && test.with(set).child(Field::left).text() == best &&
          test.with(set).child(Field::right).text() == own)
        return true;
  }
  return false;
}

// best = max(best, accuracy).
bool is_best_of(const Program& program, Ref assignment, std::string_view own) {
  const CallRef best = program.as_call(assignment.child(Field::right));
  if (!best || (best.call->name != "max" && best.call->name != "min") || best.receiver())
    return false;
  const Ref first = best.positional(0);
  const Ref second = best.positional(1);
  const std::string_view target = assignment.child(Field::left).text();
  return first && second &&
         ((first.text() == own && second.text() == target) ||
          (second.text() == own && first.text() == target));
}

bool decides(const Program& program, Ref at, std::string_view own) {
  if (at.kind() == Kind::if_statement) return keeps_best(at, own);
  if (at.kind() == Kind::assignment) return is_best_of(program, at, own);
  const CallRef call = program.as_call(at);
  return call && call.positional(0) && call.positional(0).text() == own &&
         is_plateau_step(program, call);
}

// Nothing gives the name a reduced value, and below the reduction it still is the rank's own.
bool is_own_at(const ReducedCopy& copy, Ref use, const std::vector<Assigned>& assigned) {
  const auto& tree = use.module->tree();
  if (use.node > copy.call.node && !copy.is_apart) return false;
  bool set_above = false;
  for (const Assigned& each : assigned) {
    if (each.name != copy.own) continue;
    if (tree.contains(each.value.node, copy.call.node) ||
        variables_in(each.value).contains(copy.reduced))
      return false;
    set_above = set_above || each.target < std::min(use.node, copy.call.node);
  }
  return set_above;
}

}  // namespace

void check_own_copies(const Program& program, const std::vector<Reduction>& reductions,
                      Report& report) {
  for (const FunctionRef& function : program.functions()) {
    const auto copies = CopiesIn(program, function, reductions).find();
    if (copies.empty()) continue;
    const Ref body{function.module, function.function->body};
    const auto& tree = body.module->tree();
    const std::vector<Assigned> assigned = assignments_in(body);
    for (NodeId at = body.node; at < tree[body.node].last; ++at) {
      const auto own = std::find_if(copies.begin(), copies.end(), [&](const ReducedCopy& copy) {
        return program.innermost_loop(body.with(at)) == program.innermost_loop(copy.call) &&
               decides(program, body.with(at), copy.own) &&
               is_own_at(copy, body.with(at), assigned);
      });
      if (own == copies.end()) continue;
      report
          .at(body.with(at), Confidence::likely,
              "'" + own->own +
                  "' is that of one rank's part of the data, and decides: what it is "
                  "reduced into is '" +
                  own->reduced + "'")
          .help = "Decide by '" + own->reduced + "'.";
    }
  }
}

}  // namespace bench::pitfalls
