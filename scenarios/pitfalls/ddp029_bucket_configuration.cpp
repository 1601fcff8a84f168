#include "scenarios/pitfalls/checks.hpp"

namespace bench::pitfalls {

using diagnose::Value;
using diagnose::Wrap;
using diagnose::Wrapper;

void check_bucket_configuration(const Program& program, Report& report) {
  constexpr double kTinyMib = 1;
  constexpr double kHugeMib = 500;
  for (const Wrap& wrap : program.wraps()) {
    const Ref cap = wrap.call.keyword("bucket_cap_mb");
    if (!cap || wrap.kind != Wrapper::ddp) continue;
    const Value value = program.evaluate(cap);
    if (value.type != Value::Type::integer && value.type != Value::Type::number) continue;
    const double mib =
        value.type == Value::Type::integer ? static_cast<double>(value.integer) : value.number;
    if (mib == 0) {
      report
          .at(cap, Confidence::certain,
              "bucket_cap_mb=0: AssertionError \"bucket_cap_mb should be set by now\"")
          .severity = Severity::error;
    } else if (mib < kTinyMib) {
      report
          .at(cap, Confidence::check, "very small buckets: many launches, each with little to send")
          .help = "The default is 25 MiB; tune it by a sweep.";
    } else if (mib >= kHugeMib) {
      report
          .at(cap, Confidence::check,
              "very large buckets: the reduction starts only when backward is nearly done")
          .help = "The default is 25 MiB; tune it by a sweep.";
    }
  }
}

}  // namespace bench::pitfalls
