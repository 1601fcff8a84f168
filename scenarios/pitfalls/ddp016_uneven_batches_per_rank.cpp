#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/facts.hpp"

namespace bench::pitfalls {

using diagnose::Field;
using diagnose::Kind;
using diagnose::kNoNode;
using diagnose::Module;
using diagnose::NodeId;

void check_uneven_batches_per_rank(const Program& program, Report& report) {
  if (!facts::is_distributed(program) || program.framework_distributes()) return;
  if (program.mentions("Join(") || program.mentions("model.join(")) return;
  for (const Module* module : program.modules())
    for (const NodeId node : module->nodes_of(Kind::subscript)) {
      const Ref subscript{module, node};
      const auto& tree = module->tree();
      const NodeId slice = tree.child(node, Field::subscript);
      if (slice == kNoNode || tree[slice].kind != Kind::slice || tree.child_count(slice) < 2)
        continue;
      NodeId last = kNoNode;
      for (NodeId at = tree[slice].first_child; at != kNoNode; at = tree[at].next_sibling)
        last = at;
      const Ref start{module, tree[slice].first_child};
      const Ref step{module, last};
      if (!program.is_world_size(step) || !(program.is_rank(start) || program.is_local_rank(start)))
        continue;
      const NodeId owner = module->scope_of(node);
      // Samplers pad to equal counts before they slice.
      if (facts::contains(tree.text(owner), "total_size") ||
          facts::contains(tree.text(owner), "num_samples") || program.is_evaluation(subscript))
        continue;
      report
          .at(subscript, Confidence::likely,
              "data is dealt out by slicing: ranks get one sample more or less, and the last "
              "collective "
              "of the epoch waits for a rank that is done")
          .help =
          "Truncate to the smallest share, pad as DistributedSampler does, or train under "
          "`with model.join():`.";
    }
}

}  // namespace bench::pitfalls
