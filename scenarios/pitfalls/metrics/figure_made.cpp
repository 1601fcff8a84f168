#include "scenarios/pitfalls/metrics/figure_made.hpp"

#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/reach/certainty.hpp"

#include <algorithm>
#include <string>
#include <string_view>

namespace bench::pitfalls {

using diagnose::Field;
using diagnose::Kind;
using diagnose::kNoNode;
using diagnose::NodeId;

namespace {

// meters of meters["loss"] and meters.loss, self.loss of self.loss.total: what the statements below
// may name in other words.
std::string whole_of(std::string_view name) {
  constexpr std::string_view kSelf = "self.";
  const std::size_t from = name.starts_with(kSelf) ? kSelf.size() : 0;
  return std::string(name.substr(0, name.find_first_of(".[", from)));
}

bool has_key_of_round(std::string_view name) {
  const std::size_t at = name.find('[');
  return at != std::string_view::npos && at + 1 < name.size() && name[at + 1] != '"' &&
         name[at + 1] != '\'';
}

// The expression holds the sum itself: not another item or attribute of the object that it is a
// part of, and not only the number of things in it.
bool holds(Ref expression, const std::string& name) {
  const std::string whole = whole_of(name);
  std::string text(expression.text());
  for (const std::string& each : {name, whole})
    for (std::size_t at; (at = text.find("len(" + each + ")")) != std::string::npos;)
      text.erase(at, each.size() + 5);
  if (name != whole && facts::contains(text, name)) return true;
  const VariableNames names = variables_in(expression);
  if (name != whole)
    return names.contains(whole) && !facts::contains(text, whole + "[") &&
           !facts::contains(text, whole + ".");
  return names.contains(whole) && facts::contains(text, whole);
}

// torch.cat(preds), np.array(labels), preds.cpu().numpy(): the same data in another container.
bool only_joins(const Program& program, Ref value) {
  constexpr std::string_view kJoins[] = {"cat",    "concat",     "concatenate", "stack", "vstack",
                                         "hstack", "array",      "asarray",     "cpu",   "numpy",
                                         "tensor", "from_numpy", "detach",      "list",  "tolist",
                                         "to",     "squeeze",    "flatten",     "view",  "reshape"};
  const CallRef call = program.as_call(value);
  if (!call) return value.kind() == Kind::identifier;
  const auto calls = facts::calls_in(value);
  return std::all_of(calls.begin(), calls.end(), [&](const CallRef& each) {
    return std::find(std::begin(kJoins), std::end(kJoins), each.call->name) != std::end(kJoins);
  });
}

// One statement below the loop, and what it does with the sum.
enum class Use : std::uint8_t { none, starts_anew, joins, makes };

class FigureBelow {
 public:
  // losses[name] with a key of the round: all of losses is made below.
  FigureBelow(const Program& program, Ref loop, const std::string& sum)
      : program_(program), loop_(loop), names_{has_key_of_round(sum) ? whole_of(sum) : sum} {}

  Ref find() {
    const auto& tree = loop_.module->tree();
    const NodeId end = tree[body_around(program_, loop_).node].last;
    for (NodeId at = tree[loop_.node].last; at < end; ++at) {
      const Kind kind = tree[at].kind;
      if (kind == Kind::function || kind == Kind::class_definition) {
        at = tree[at].last - 1;
        continue;
      }
      const Ref statement = loop_.with(at);
      if (facts::exclusive(loop_, statement)) continue;
      const Use use = use_in(statement);
      if (use == Use::makes && runs_as_the_loop_does(statement)) return statement;
      if (use == Use::starts_anew) return {};
      if (kind == Kind::assignment) at = tree[at].last - 1;  // with the calls in it
    }
    return {};
  }

 private:
  bool holds_any_of(Ref expression) const {
    return std::any_of(names_.begin(), names_.end(),
                       [&](const std::string& name) { return holds(expression, name); });
  }

  // Not under an option of its own that may be off: if return_outputs: return preds. Nor where such
  // an option leaves out the loop: the doubt is about what adds.
  bool runs_as_the_loop_does(Ref statement) const {
    return facts::certainty_of_reach(program_, statement) ==
           facts::certainty_of_reach(program_, loop_);
  }

  Use use_in(Ref at) {
    if (at.kind() == Kind::assignment) return use_of_assignment(at);
    const bool is_whole = at.kind() == Kind::return_statement ||
                          at.kind() == Kind::augmented_assignment || at.kind() == Kind::call;
    const Ref condition = at.kind() == Kind::if_statement || at.kind() == Kind::while_statement
                              ? at.child(Field::condition)
                              : Ref{};
    const Ref read = is_whole ? at : condition;
    return read && holds_any_of(read) ? Use::makes : Use::none;
  }

  Use use_of_assignment(Ref at) {
    const Ref left = at.child(Field::left);
    const Ref right = at.child(Field::right);
    if (!left || !right) return Use::none;
    if (!holds_any_of(right)) return holds_any_of(left) ? Use::starts_anew : Use::none;
    if (!only_joins(program_, right)) return Use::makes;
    names_.merge(variables_in(left));
    return Use::joins;
  }

  const Program& program_;
  Ref loop_;
  VariableNames names_;
};

}  // namespace

Ref figure_made_at(const Program& program, Ref loop, const MetricSum& sum) {
  const Ref made = FigureBelow(program, loop, sum.name).find();
  return made ? made : sum.at;
}

}  // namespace bench::pitfalls
