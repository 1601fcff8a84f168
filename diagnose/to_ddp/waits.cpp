#include "diagnose/to_ddp/waits.hpp"

#include "scenarios/pitfalls/files/unwaited_reads.hpp"
#include "scenarios/pitfalls/program/edits.hpp"
#include "scenarios/pitfalls/program/facts.hpp"

#include <algorithm>
#include <string>

namespace bench::diagnose {
namespace {

constexpr int kCallers = 4;

// for epoch in range(start, args.epochs): as many rounds on every rank. Where one leaves it alone,
// the others wait for its gradients anyway.
bool goes_round_alike(const Program& program, Ref loop) {
  const CallRef range = program.as_call(loop.child(Field::right));
  if (loop.kind() != Kind::for_statement || !range || range.call->name != "range") return false;
  const auto& skips = loop.module->nodes_of(Kind::continue_statement);
  return std::none_of(skips.begin(), skips.end(),
                      [&](NodeId skip) { return program.innermost_loop(loop.with(skip)) == loop; });
}

// No condition, loop or call on the way is one rank's own.
bool is_come_by_by_all(const Program& program, Ref node, int depth) {
  const auto& tree = node.module->tree();
  for (const Kind kind : {Kind::except_clause, Kind::finally_clause, Kind::comprehension,
                          Kind::lambda, Kind::try_statement, Kind::with_statement})
    if (tree.ancestor(node.node, kind) != kNoNode) return false;
  const FunctionRef function = program.enclosing_function(node);
  const auto guards = program.guards(node);
  if (!std::all_of(guards.begin(), guards.end(),
                   [&](const Guard& guard) { return is_same_for_all(program, guard.condition); }))
    return false;
  for (NodeId at = tree[node.node].parent; at != kNoNode; at = tree[at].parent) {
    if (tree[at].kind == Kind::function) break;
    if ((tree[at].kind == Kind::for_statement || tree[at].kind == Kind::while_statement) &&
        !goes_round_alike(program, node.with(at)))
      return false;
  }
  if (!function) return true;
  const auto& sites = program.call_sites(function);
  return depth < kCallers && !sites.empty() &&
         std::all_of(sites.begin(), sites.end(), [&](const CallRef& site) {
           return is_come_by_by_all(program, site.ref(), depth + 1);
         });
}

// What the file has for torch.distributed; empty where it imports neither.
std::string group_of(const Module& file) {
  const std::string source = "\n" + std::string(file.tree().source());
  if (source.find("\nimport torch.distributed as dist\n") != std::string::npos) return "dist";
  return source.find("\nimport torch\n") != std::string::npos ? "torch.distributed" : "";
}

}  // namespace

// Options alone: args.test, not opts.resume, self.args.wa == True, __name__ == "__main__": the same
// for all ranks.
bool is_same_for_all(const Program& program, Ref condition) {
  if (!pitfalls::facts::calls_in(condition).empty()) return false;
  const auto& tree = condition.module->tree();
  for (NodeId at = condition.node; at < tree[condition.node].last; ++at) {
    const Ref name = condition.with(at);
    const NodeId up = tree[at].parent;
    if ((name.kind() != Kind::identifier && name.kind() != Kind::attribute) ||
        (at != condition.node && tree[up].kind == Kind::attribute) || name.text() == "__name__")
      continue;
    const auto& sources = program.sources(name);
    if (sources.empty() || std::any_of(sources.begin(), sources.end(), [](const Source& source) {
          return source.how != Source::How::argument;
        }))
      return false;
  }
  return true;
}

bool is_come_by_by_all(const Program& program, Ref node) {
  return is_come_by_by_all(program, node, 0);
}

std::vector<Finding> waits_for_saved(const Program& rewritten) {
  std::vector<Finding> out;
  for (const auto& [place, read] : pitfalls::unwaited_reads(rewritten)) {
    const Module& file = *place.module;
    const std::string group = group_of(file);
    if (group.empty() || !is_come_by_by_all(rewritten, place.ref())) continue;
    Finding made;
    made.rule = "DDP026";
    made.file = file.path();
    made.line = file.tree().line_of(place.call->node);
    made.message = "rank 0 alone saves this file, and all ranks load it here";
    const std::string wait = group + ".barrier()";
    pitfalls::insert_before(
        place.ref(),
        &file == &rewritten.root() ? wait : "if " + group + ".is_initialized():\n\t" + wait,
        "Wait for what rank 0 saves", made);
    if (made.fix) out.push_back(std::move(made));
  }
  return out;
}

}  // namespace bench::diagnose
