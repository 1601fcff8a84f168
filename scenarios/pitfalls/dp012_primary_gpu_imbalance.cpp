#include "scenarios/pitfalls/checks.hpp"

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Source;
using diagnose::Wrapper;

void check_primary_gpu_imbalance(const Program& program, Report& report) {
  for (const CallRef& loss : program.calls_named("backward")) {
    const Ref value = loss.receiver();
    if (!value || program.wraps().empty()) continue;
    for (const Source& source : program.sources(value)) {
      const CallRef call = program.as_call(source.ref);
      if (!call) continue;
      const bool is_loss = call.call->api == Api::loss ||
                           program.comes_from({call.module, call.call->function}, Api::loss);
      const Ref input = call.positional(0);
      if (!is_loss || !input || !program.is_wrapped(input, Wrapper::data_parallel)) {
        bool gathered = false;
        if (is_loss && input)
          for (const Source& from : program.sources(input))
            for (const auto& forward : program.forward_calls())
              gathered = gathered || (forward.call.ref() == from.ref &&
                                      forward.wrap->kind == Wrapper::data_parallel);
        if (!gathered) continue;
      }
      report
          .at(call.ref(), Confidence::check,
              "the loss is computed on outputs gathered on the first GPU: with large outputs it "
              "runs out of memory while the others have room")
          .severity = Severity::info;
      return;
    }
  }
}

}  // namespace bench::pitfalls
