#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/facts.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::ClassRef;
using diagnose::Wrapper;

void check_rnn_under_dataparallel(const Program& program, Report& report) {
  if (!program.has_data_parallel()) return;
  const auto classes = facts::wrapped_classes(program, Wrapper::data_parallel);
  for (const CallRef& call : program.calls(Api::pad_packed)) {
    if (call.keyword("total_length") || call.positional(3)) continue;
    const ClassRef owner = program.enclosing_class(call.ref());
    if (!owner || std::find(classes.begin(), classes.end(), owner) == classes.end()) continue;
    Finding& finding =
        report.at(call.ref(), Confidence::certain,
                  "pad_packed_sequence without total_length under DataParallel: every replica pads "
                  "to its own longest sequence, and gathering them fails");
    finding.help = "Pass total_length=x.size(1), taken from the padded input.";
  }
  for (const auto& forward : program.forward_calls()) {
    if (forward.wrap->kind != Wrapper::data_parallel) continue;
    for (std::size_t i = 0;; ++i) {
      const Ref argument = forward.call.positional(i);
      if (!argument) break;
      if (!program.comes_from(argument, Api::pack_padded)) continue;
      report
          .at(argument, Confidence::certain,
              "a PackedSequence is passed into DataParallel: its data and its batch sizes are cut "
              "independently of each other")
          .help = "Pass the padded tensor and the lengths, and pack inside forward.";
    }
  }
}

}  // namespace bench::pitfalls
