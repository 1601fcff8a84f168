#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/facts.hpp"

namespace bench::pitfalls {

using diagnose::ClassRef;
using diagnose::FunctionRef;
using diagnose::Kind;
using diagnose::NodeId;
using diagnose::Wrap;
using diagnose::Wrapper;

namespace {

bool forward_branches(const Program& program, const Wrap& wrap) {
  for (const ClassRef& cls : wrap.classes)
    for (const FunctionRef& method : facts::forward_methods(program, cls))
      for (const NodeId node : method.module->nodes_of(Kind::if_statement))
        if (method.module->tree().contains(method.function->node, node)) return true;
  return false;
}

}  // namespace

void check_needless_unused_search(const Program& program, Report& report) {
  for (const Wrap& wrap : program.wraps()) {
    if (wrap.kind != Wrapper::ddp) continue;
    const Ref flag = wrap.call.keyword("find_unused_parameters");
    if (!flag || flag.kind() != Kind::true_literal) continue;
    if (program.is_literal_true(wrap.call.keyword("static_graph"))) {
      report
          .at(flag, Confidence::certain,
              "find_unused_parameters=True is not needed with static_graph=True, which finds "
              "unused parameters once")
          .help = "Remove find_unused_parameters.";
      continue;
    }
    if (forward_branches(program, wrap)) continue;
    Finding& finding = report.at(
        flag, Confidence::check,
        "find_unused_parameters=True walks the autograd graph in every step; the script shows no "
        "branch that would leave parameters unused");
    finding.severity = Severity::info;
    finding.help =
        "Try False: PyTorch raises an error in step 2 if a parameter is unused after all.";
  }
}

}  // namespace bench::pitfalls
