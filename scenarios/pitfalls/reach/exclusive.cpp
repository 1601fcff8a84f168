// Whether two places exclude each other, by the branches and the conditions that they stand in.
#include "scenarios/pitfalls/program/facts.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <utility>

namespace bench::pitfalls::facts {

using diagnose::Field;
using diagnose::Kind;
using diagnose::kNoNode;
using diagnose::NodeId;
using diagnose::Op;
using diagnose::SyntaxTree;

namespace {

// What holds at a node: `subject` has the value, or not. A condition that is no comparison with a
// literal is its own subject, with an empty value.
struct Known {
  std::string_view subject;
  std::string_view value;
  bool equal = true;
  Op order = Op::none;  // of gpus > 1: it is above, or below, the value
};

bool is_literal(Kind kind) {
  return kind == Kind::string || kind == Kind::integer || kind == Kind::true_literal ||
         kind == Kind::false_literal || kind == Kind::none_literal;
}

// 'a' and "a" are one value.
std::string_view unquoted(std::string_view text) {
  const std::size_t begin = text.find_first_not_of("'\"");
  const std::size_t end = text.find_last_not_of("'\"");
  return begin == std::string_view::npos ? text : text.substr(begin, end - begin + 1);
}

// A choice of several parts whose outcome does not change while the program runs, unlike what asks
// the file system.
bool tells_the_same_again(const SyntaxTree& tree, NodeId condition) {
  if (tree[condition].kind != Kind::boolean) return false;
  const std::string_view text = tree.text(condition);
  return !contains(text, "exists(") && !contains(text, "isfile(") && !contains(text, "isdir(");
}

// A flat `a and b and ...` is as deep as it is long.
constexpr int kDeepestPart = 64;

// A number of GPUs or processes is one in a whole run; that of a round is another in the next.
bool counts_devices(std::string_view subject) {
  const std::string text = lowered(subject);
  for (const char* word : {"gpu", "device_count", "n_dev", "num_dev", "world_size", "nproc",
                           "num_proc", "n_proc", "nodes"})
    if (contains(text, word)) return true;
  return false;
}

bool is_order(Op op) {
  return op == Op::less || op == Op::less_equal || op == Op::greater || op == Op::greater_equal;
}

// >= for <: what holds where the comparison does not.
Op opposite(Op op) {
  switch (op) {
    case Op::less:
      return Op::greater_equal;
    case Op::less_equal:
      return Op::greater;
    case Op::greater:
      return Op::less_equal;
    case Op::greater_equal:
      return Op::less;
    default:
      return op;
  }
}

void add_known(const SyntaxTree& tree, NodeId condition, bool holds, std::vector<Known>& out,
               int depth = 0) {
  if (condition == kNoNode || depth > kDeepestPart) return;
  const auto& node = tree[condition];
  if (node.kind == Kind::not_expression)
    return add_known(tree, tree.child(condition, Field::argument), !holds, out, depth + 1);
  // The same words in two places: `if several and ddp:` here, and an else of it there.
  if (tells_the_same_again(tree, condition)) out.push_back({tree.text(condition), {}, holds});
  if (node.kind == Kind::boolean) {
    // Both parts of an `and` that holds are known, and both of an `or` that does not.
    if ((node.op == Op::logical_and) != holds) return;
    add_known(tree, tree.child(condition, Field::left), holds, out, depth + 1);
    add_known(tree, tree.child(condition, Field::right), holds, out, depth + 1);
    return;
  }
  if (node.kind == Kind::comparison && tree.child_count(condition) == 2) {
    const NodeId right = tree.child_at(condition, 1);
    const bool is_out = node.op == Op::not_in;
    if (is_out || node.op == Op::in) {  // of several values it is none: kind not in ["a", "b"]
      const Kind kind = tree[right].kind;
      if (is_out != holds || (kind != Kind::list && kind != Kind::tuple)) return;
      for (NodeId each = tree[right].first_child; each != kNoNode; each = tree[each].next_sibling)
        if (is_literal(tree[each].kind))
          out.push_back({tree.text(tree.child_at(condition, 0)), unquoted(tree.text(each)), false});
      return;
    }
    if (const Op order = holds ? node.op : opposite(node.op);
        is_order(order) && tree[right].kind == Kind::integer &&
        counts_devices(tree.text(tree.child_at(condition, 0))))
      return out.push_back({tree.text(tree.child_at(condition, 0)), tree.text(right), true, order});
    const bool equal = node.op == Op::equal || node.op == Op::is;
    if (!equal && node.op != Op::not_equal && node.op != Op::is_not) return;
    if (is_literal(tree[right].kind))
      out.push_back(
          {tree.text(tree.child_at(condition, 0)), unquoted(tree.text(right)), equal == holds});
    return;
  }
  if (node.kind == Kind::identifier || node.kind == Kind::attribute)
    out.push_back({tree.text(condition), {}, holds});
}

std::vector<Known> known_at(const SyntaxTree& tree, NodeId node) {
  std::vector<Known> out;
  for (NodeId at = node; at != kNoNode; at = tree[at].parent) {
    const NodeId parent = tree[at].parent;
    if (parent == kNoNode || tree[at].kind == Kind::function) break;
    const Kind kind = tree[parent].kind;
    const Field field = tree[at].field;
    if ((kind == Kind::if_statement || kind == Kind::elif_clause) && field == Field::consequence)
      add_known(tree, tree.child(parent, Field::condition), true, out);
    if (kind == Kind::if_statement && field == Field::alternative)
      add_known(tree, tree.child(parent, Field::condition), false, out);
  }
  return out;
}

// Across functions, self.args.mode is the args.mode that the object was given.
std::string_view without_self(std::string_view subject) {
  constexpr std::string_view kSelf = "self.";
  return subject.starts_with(kSelf) ? subject.substr(kSelf.size()) : subject;
}

// The whole numbers that n == 1, n > 1 and n <= 4 leave; empty for what is no number.
std::optional<std::pair<long, long>> range_of(const Known& known) {
  constexpr std::size_t kDigits = 9;  // more than any number of devices has
  long value = 0;
  const char* const end = known.value.data() + known.value.size();
  if (known.value.empty() || known.value.size() > kDigits || !known.equal ||
      std::from_chars(known.value.data(), end, value).ptr != end)
    return std::nullopt;
  constexpr long kLeast = std::numeric_limits<long>::min();
  constexpr long kMost = std::numeric_limits<long>::max();
  switch (known.order) {
    case Op::less:
      return std::pair(kLeast, value - 1);
    case Op::less_equal:
      return std::pair(kLeast, value);
    case Op::greater:
      return std::pair(value + 1, kMost);
    case Op::greater_equal:
      return std::pair(value, kMost);
    default:
      return std::pair(value, value);
  }
}

bool contradict(const Known& a, const Known& b) {
  if (a.subject != b.subject) return false;
  if (a.order != Op::none || b.order != Op::none) {
    const auto one = range_of(a);
    const auto other = range_of(b);
    return one && other && (one->second < other->first || other->second < one->first);
  }
  if (a.value == b.value) return a.equal != b.equal;
  return a.equal && b.equal && !a.value.empty() && !b.value.empty();
}

bool in_branches_of_one(const SyntaxTree& tree, NodeId a, NodeId b) {
  for (NodeId at = a; at != kNoNode; at = tree[at].parent) {
    const NodeId parent = tree[at].parent;
    if (parent == kNoNode) return false;
    const Kind kind = tree[parent].kind;
    if (kind != Kind::if_statement && kind != Kind::try_statement && kind != Kind::conditional)
      continue;
    if (tree.contains(parent, b)) return !tree.contains(at, b);
  }
  return false;
}

bool contradict(const std::vector<Known>& first, const std::vector<Known>& second) {
  return std::any_of(first.begin(), first.end(), [&](const Known& one) {
    return std::any_of(second.begin(), second.end(),
                       [&](const Known& other) { return contradict(one, other); });
  });
}

}  // namespace

bool exclusive(Ref a, Ref b) {
  if (a.module != b.module) return false;
  const SyntaxTree& tree = a.module->tree();
  if (in_branches_of_one(tree, a.node, b.node)) return true;
  if (a.module->function_of(a.node) != b.module->function_of(b.node)) return false;
  return contradict(known_at(tree, a.node), known_at(tree, b.node));
}

bool are_of_different_modes(Ref a, Ref b) {
  if (a.module != b.module) return false;
  std::vector<Known> first = known_at(a.module->tree(), a.node);
  std::vector<Known> second = known_at(b.module->tree(), b.node);
  for (std::vector<Known>* all : {&first, &second})
    for (Known& each : *all) each.subject = without_self(each.subject);
  return contradict(first, second);
}

}  // namespace bench::pitfalls::facts
