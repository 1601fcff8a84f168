#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/program/facts.hpp"

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Kind;
using diagnose::Module;
using diagnose::Source;

namespace {

// What a docstring says about dividing divides nothing.
std::string_view without_docstring(const Module& module, diagnose::NodeId body) {
  const auto& tree = module.tree();
  const diagnose::NodeId first = tree[body].first_child;
  const std::string_view text = module.text(body);
  if (first == diagnose::kNoNode || tree[first].kind != Kind::expression_statement) return text;
  const diagnose::NodeId said = tree[first].first_child;
  if (said == diagnose::kNoNode || tree[said].kind != Kind::string) return text;
  return text.substr(tree[first].begin + tree.text(first).size() - tree[body].begin);
}

}  // namespace

void check_comm_hook_misuse(const Program& program, Report& report) {
  const auto hooks = program.calls_named("register_comm_hook");
  for (const CallRef& call : hooks) {
    const Ref hook = call.argument(1, "hook");
    for (const Source& source : program.sources(hook)) {
      if (source.ref.kind() != Kind::function) continue;
      const Module& module = *source.ref.module;
      const auto* function = module.function_at(source.ref.node);
      if (function->parameters.size() >= 2 && function->parameters[1].name != "bucket")
        report
            .at({&module, function->parameters[1].node}, Confidence::certain,
                "the second parameter of a communication hook must be called bucket: KeyError "
                "'bucket'")
            .help = "Rename it to bucket.";
      const std::string_view body = without_docstring(module, function->body);
      for (const CallRef& reduce : facts::calls_in({&module, function->body}))
        if (reduce.call->api == Api::all_reduce && !facts::contains(body, "div") &&
            !facts::contains(body, "/") && !facts::contains(body, "AVG"))
          report
              .at(reduce.ref(), Confidence::likely,
                  "the hook sums gradients over ranks and never divides: they are world size times "
                  "too large")
              .help = "Divide the tensor by the world size before reducing it.";
    }
    for (const CallRef& other : hooks)
      if (other.call != call.call && program.same_variable(call.receiver(), other.receiver()) &&
          other.call->node < call.call->node && !facts::exclusive(call.ref(), other.ref())) {
        report
            .at(call.ref(), Confidence::certain,
                "a second communication hook on one model: it can be registered only once")
            .help = "Chain both in one hook.";
        break;
      }
  }
}

}  // namespace bench::pitfalls
