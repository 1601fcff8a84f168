#include "scenarios/pitfalls/checks.hpp"

namespace bench::pitfalls {

using diagnose::ClassRef;
using diagnose::FunctionRef;
using diagnose::Kind;
using diagnose::kNoNode;
using diagnose::NodeId;
using diagnose::Source;
using diagnose::Wrap;
using diagnose::Wrapper;

namespace {

bool is_searchable(const ClassRef& cls) {
  const auto parent = cls.module->tree()[cls.cls->node].parent;
  if (parent != kNoNode && cls.module->tree()[parent].kind == Kind::decorated) return true;
  return !cls.cls->bases.empty() && cls.module->text(cls.cls->bases.front()) != "object";
}

}  // namespace

void check_opaque_output_class(const Program& program, Report& report) {
  for (const Wrap& wrap : program.wraps()) {
    if (wrap.kind != Wrapper::ddp ||
        !program.is_literal_true(wrap.call.keyword("find_unused_parameters")))
      continue;
    for (const ClassRef& cls : wrap.classes) {
      const FunctionRef forward = program.method(cls, "forward");
      if (!forward) continue;
      for (const NodeId value : forward.function->returns)
        for (const Source& source : program.sources({forward.module, value})) {
          const ClassRef made = program.class_of_call(program.as_call(source.ref));
          if (!made || is_searchable(made)) continue;
          report
              .at(source.ref, Confidence::certain,
                  "forward returns an object DDP cannot look into: with "
                  "find_unused_parameters=True every "
                  "parameter counts as unused")
              .help = "Return a dict, a tuple or a dataclass.";
        }
    }
  }
}

}  // namespace bench::pitfalls
