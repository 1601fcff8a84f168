#include "scenarios/pitfalls/checks.hpp"

namespace bench::pitfalls {

using diagnose::Wrap;
using diagnose::Wrapper;

void check_grad_stride_mismatch(const Program& program, Report& report) {
  for (const CallRef& call : program.calls_named("to")) {
    const Ref format = call.keyword("memory_format");
    if (!format || program.qualified(format) != "torch.channels_last" || !call.receiver()) continue;
    const Wrap* wrap = program.wrap_of(call.receiver());
    if (wrap == nullptr || wrap->kind != Wrapper::ddp ||
        !program.runs_before(wrap->call.ref(), call.ref()))
      continue;
    report
        .at(call.ref(), Confidence::likely,
            "channels_last after wrapping: DDP's buckets keep the old strides, and every gradient "
            "is copied")
        .help = "Convert before wrapping.";
  }
}

}  // namespace bench::pitfalls
