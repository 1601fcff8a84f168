#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/facts.hpp"

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Field;
using diagnose::Kind;
using diagnose::kNoNode;
using diagnose::NodeId;

void check_rank_from_current_device(const Program& program, Report& report) {
  for (const CallRef& call : program.calls(Api::current_device)) {
    const Ref node = call.ref();
    const auto& tree = node.module->tree();
    const NodeId parent = tree[node.node].parent;
    const std::string name = facts::lowered(program.assigned_name(node));
    bool as_rank = name == "rank" || name == "global_rank" || name.ends_with(".rank") ||
                   name.ends_with("global_rank");
    if (parent != kNoNode && tree[parent].kind == Kind::comparison && program.has_ddp()) {
      const Ref other = node.with(tree.child_at(parent, 0) == node.node ? tree.child_at(parent, 1)
                                                                        : tree.child_at(parent, 0));
      as_rank = as_rank || program.integer(other) == 0;
    }
    if (parent != kNoNode && tree[parent].kind == Kind::keyword_argument)
      as_rank = as_rank || tree.text(tree.child(parent, Field::name)) == "rank";
    if (!as_rank) continue;
    report
        .at(node, Confidence::certain,
            "the current device is taken for the rank: it is 0 on every rank until set_device is "
            "called, "
            "and repeats on every node")
        .help = "Use dist.get_rank().";
  }
}

}  // namespace bench::pitfalls
