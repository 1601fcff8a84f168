#include "scenarios/pitfalls/program/attribute_attempt.hpp"

#include "scenarios/pitfalls/program/words.hpp"

#include <algorithm>
#include <cstddef>

namespace bench::pitfalls {

using diagnose::Kind;
using diagnose::kNoNode;
using diagnose::NodeId;

namespace {

constexpr std::ptrdiff_t kFewLines = 3;

bool holds_little(std::string_view block) {
  return std::count(block.begin(), block.end(), '\n') < kFewLines;
}

// What the handler names: all of `except (A, B) as error:`.
std::string_view caught_by(Ref handler) {
  const std::string_view text = handler.text();
  return text.substr(0, text.find('\n'));
}

bool catches_anything(std::string_view caught) {
  return holds_any(caught, {"except:", "except :", "Exception"});
}

bool is_attempt_of(Ref attempt, NodeId use, std::string_view attribute) {
  const auto& tree = attempt.module->tree();
  bool few = false;
  bool anything = false;
  for (NodeId part = tree[attempt.node].first_child; part != kNoNode;
       part = tree[part].next_sibling) {
    const Ref at = attempt.with(part);
    if (tree.contains(part, use)) {
      few = at.kind() == Kind::block && holds_little(at.text());
      continue;
    }
    const std::string_view text = at.text();
    if (facts::contains(text, ".module") || facts::contains(text, attribute)) return true;
    if (at.kind() != Kind::except_clause) continue;
    const std::string_view caught = caught_by(at);
    if (facts::contains(caught, "AttributeError")) return true;
    anything = anything || catches_anything(caught);
  }
  return few && anything;
}

}  // namespace

bool is_attempt(Ref use, std::string_view attribute) {
  const auto& tree = use.module->tree();
  for (NodeId at = tree.ancestor(use.node, Kind::try_statement); at != kNoNode;
       at = tree.ancestor(at, Kind::try_statement))
    if (is_attempt_of(use.with(at), use.node, attribute)) return true;
  return false;
}

}  // namespace bench::pitfalls
