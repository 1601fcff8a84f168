#include "scenarios/pitfalls/steps/hours_elapsed.hpp"

#include "scenarios/pitfalls/program/words.hpp"

#include <string_view>

namespace bench::pitfalls {

using diagnose::Field;
using diagnose::Kind;
using diagnose::kNoNode;
using diagnose::NodeId;
using diagnose::Op;

namespace {

bool is_of_minutes(std::string_view divisor) {
  static constexpr std::string_view kHours[] = {"3600",    "3600.",     "3600.0",    "(60*60)",
                                                "60 * 60", "(60 * 60)", "60.0 * 60", "60*60"};
  return std::find(std::begin(kHours), std::end(kHours), divisor) != std::end(kHours);
}

// The difference goes into a division by 3600, or into timedelta(...).
bool is_in_hours(const Program& program, Ref difference) {
  const auto& tree = difference.module->tree();
  NodeId at = tree[difference.node].parent;
  for (int depth = 0; at != kNoNode && depth < 4; ++depth, at = tree[at].parent) {
    const Ref around = difference.with(at);
    if (around.kind() == Kind::binary && tree[at].op == Op::divide)
      return is_of_minutes(around.child(Field::right).text());
    if (const CallRef call = program.as_call(around))
      if (call.call->name == "timedelta") return true;
  }
  return false;
}

}  // namespace

bool is_told_in_hours(const Program& program, const CallRef& start) {
  const std::string_view name = program.assigned_name(start.ref());
  if (name.empty()) return false;
  const auto& tree = start.module->tree();
  bool told = false;
  for (const NodeId node : start.module->nodes_of(Kind::binary)) {
    const Ref difference{start.module, node};
    if (tree[node].op != Op::subtract || difference.child(Field::right).text() != name) continue;
    if (!is_in_hours(program, difference)) return false;
    told = true;
  }
  return told;
}

}  // namespace bench::pitfalls
