#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/facts.hpp"

namespace bench::pitfalls {

using diagnose::ClassRef;
using diagnose::FunctionRef;
using diagnose::Wrapper;

namespace {

bool asks_for_own_parameters(const CallRef& call) {
  const Ref receiver = call.receiver();
  if (!receiver || receiver.text() != "self") return false;
  return call.call->name == "parameters" || call.call->name == "state_dict" ||
         call.call->name == "named_parameters";
}

}  // namespace

void check_parameters_empty_in_replica(const Program& program, Report& report) {
  if (!program.has_data_parallel()) return;
  for (const ClassRef& cls : facts::wrapped_classes(program, Wrapper::data_parallel)) {
    std::vector<FunctionRef> methods = facts::forward_methods(program, cls);
    // Properties that forward reads: self.device, self.dtype.
    const std::size_t called = methods.size();
    for (const std::string_view property : {"device", "dtype"}) {
      const FunctionRef getter = program.method(cls, property);
      if (!getter) continue;
      const std::string wanted = "self." + std::string(property);
      for (std::size_t i = 0; i < called; ++i)
        if (facts::contains(methods[i].module->text(methods[i].function->body), wanted)) {
          methods.push_back(getter);
          break;
        }
    }
    for (const FunctionRef& method : methods)
      for (const CallRef& call : facts::calls_in({method.module, method.function->body}))
        if (asks_for_own_parameters(call))
          report
              .at(call.ref(), Confidence::certain,
                  "self." + std::string(call.call->name) +
                      "() is empty in DataParallel's replicas: next(...) raises StopIteration")
              .help = "Use x.device and x.dtype of an input, or a buffer.";
  }
}

}  // namespace bench::pitfalls
