// Which findings of rules are told.
#include "diagnose/to_ddp/remaining/topics.hpp"
#include "diagnose/to_ddp/waits.hpp"
#include "scenarios/pitfalls/program/facts.hpp"

#include <algorithm>

namespace bench::diagnose {
namespace {

using pitfalls::facts::contains;
using pitfalls::facts::lowered;

// What has nothing to do with ranks and was so before, and what a step or a topic says: the launch,
// and the data, which is told in one entry for all loaders.
bool is_of_something_else(std::string_view rule) {
  static constexpr std::string_view kRules[] = {"LAU001", "LAU009", "DDP017", "DDP036",
                                                "DDP037", "DDP045", "DDP046", "DDP048"};
  return std::find(std::begin(kRules), std::end(kRules), rule) != std::end(kRules);
}

// Rules whose notes matter here: what they are not sure of is what the author has to look at.
bool is_told_as_note(const Finding& finding) {
  static constexpr std::string_view kRules[] = {"DDP001", "DDP015", "DDP035"};
  return std::find(std::begin(kRules), std::end(kRules), finding.rule) != std::end(kRules) &&
         !contains(finding.message, "no call that can be followed");
}

const Module* file_of(const Program& program, const Finding& finding) {
  for (const Module* module : program.modules())
    if (module->path() == finding.file) return module;
  return nullptr;
}

// The calls of the name on the finding's line.
std::vector<CallRef> calls_on_line(const Program& program, const Finding& finding,
                                   std::string_view name) {
  std::vector<CallRef> out;
  const Module* module = file_of(program, finding);
  if (module == nullptr) return out;
  for (const Call& call : module->calls())
    if (call.name == name && module->tree().line_of(call.node) == finding.line)
      out.push_back({module, &call});
  return out;
}

// A second backward pass whose loss no DDP model has made.
bool passes_wrapper_by(const Program& program, const Finding& finding) {
  const auto backwards = calls_on_line(program, finding, "backward");
  return !backwards.empty() &&
         std::none_of(backwards.begin(), backwards.end(), [&](const CallRef& backward) {
           const Ref loss = pitfalls::facts::loss_of(backward);
           if (!loss) return true;
           const auto forwards = pitfalls::facts::forwards_behind(program, loss);
           return std::any_of(forwards.begin(), forwards.end(), [&](const ForwardCall& forward) {
             return !program.under_no_grad(forward.call.ref());
           });
         });
}

// dist.get_rank() of `args.dist and dist.get_rank() == 0`
bool is_behind_flag(Ref node) {
  const auto& tree = node.module->tree();
  for (NodeId at = node.node; tree[at].parent != kNoNode; at = tree[at].parent) {
    const NodeId up = tree[at].parent;
    if (tree[up].kind == Kind::block) break;
    if (tree[up].kind != Kind::boolean || tree[up].op != Op::logical_and) continue;
    for (NodeId part = tree[up].first_child; part != kNoNode && part < at;
         part = tree[part].next_sibling)
      if (contains(lowered(tree.text(part)), "dist")) return true;
  }
  return false;
}

// Under `if args.dist:` of a file that no step has changed: the script has had no such mode.
bool is_of_another_mode(const Program& program, const Finding& finding) {
  const Module* module = file_of(program, finding);
  if (module == nullptr || module == &program.root()) return false;
  for (const Call& call : module->calls()) {
    if (module->tree().line_of(call.node) != finding.line) continue;
    const bool is_under = program.under({module, call.node}, [&](Ref condition, bool holds) {
      return holds && program.is_distributed_flag(condition) &&
             !contains(condition.text(), "is_initialized(");  // which a step may have written
    });
    if (is_under || is_behind_flag({module, call.node})) return true;
  }
  return false;
}

// if args.patience == 0: continue: whatever the round finds, all ranks do the same.
bool is_decided_alike(const Program& program, const Finding& finding) {
  const Module* module = file_of(program, finding);
  if (module == nullptr) return false;
  for (const auto& nodes :
       {module->nodes_of(Kind::continue_statement), module->nodes_of(Kind::break_statement)})
    for (const NodeId node : nodes) {
      const Ref leave{module, node};
      if (module->tree().line_of(node) != finding.line) continue;
      const Ref loop = program.innermost_loop(leave);
      auto guards = program.guards(leave);
      std::erase_if(guards, [&](const Guard& guard) {
        return !module->tree().contains(loop.node, guard.condition.node);
      });
      return !guards.empty() && std::all_of(guards.begin(), guards.end(), [&](const Guard& guard) {
        return is_same_for_all(program, guard.condition);
      });
    }
  return false;
}

// Told with what to do about its gradients, for which `.module` is no help.
bool is_pass_beside_forward(const Left& left, const Finding& finding) {
  const auto passes = passes_beside_forward(left);
  return std::any_of(passes.begin(), passes.end(), [&](Ref pass) {
    return pass.module->path() == finding.file &&
           pass.module->tree().line_of(pass.node) == finding.line;
  });
}

}  // namespace

std::vector<const Finding*> findings_left(const Left& left) {
  std::vector<const Finding*> out;
  for (const Finding& each : left.found) {
    if (is_of_something_else(each.rule) ||
        (each.severity == Severity::info && !is_told_as_note(each)) ||
        (each.rule.starts_with("DP0") && !wraps_in_data_parallel(left)) ||
        (each.rule == "DDP008" && passes_wrapper_by(left.program, each)) ||
        (each.rule == "DDP012" && is_pass_beside_forward(left, each)) ||
        is_of_another_mode(left.program, each) ||
        (each.rule == "DDP015" && is_decided_alike(left.program, each)) ||
        (each.rule == "DDP018" && !has_sharded_training(left)))
      continue;
    out.push_back(&each);
  }
  return out;
}

Harm harm_of(const Finding& finding) {
  if (finding.rule == "DDP041" || finding.rule == "DDP018") return Harm::figures;
  switch (finding.category) {
    case Category::hang:
      return Harm::stops;
    case Category::correctness:
    case Category::portability:
      return finding.severity == Severity::info ? Harm::figures : Harm::stops;
    case Category::throughput:
    case Category::memory:
    case Category::deprecated:
      break;
  }
  return Harm::waste;
}

}  // namespace bench::diagnose
