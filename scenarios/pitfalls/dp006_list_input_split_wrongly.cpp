#include "scenarios/pitfalls/checks.hpp"

namespace bench::pitfalls {

using diagnose::Kind;
using diagnose::Source;
using diagnose::Wrapper;

namespace {

// [images, boxes] is cut as it should be, tensor by tensor; numbers and strings are copied.
bool holds_plain_values(Ref list) {
  const auto& tree = list.module->tree();
  const diagnose::NodeId first = tree.child_at(list.node, 0);
  if (first == diagnose::kNoNode) return false;
  const Kind kind = tree[first].kind;
  return kind == Kind::integer || kind == Kind::floating || kind == Kind::string;
}

bool is_list_of_items(const Program& program, Ref argument) {
  for (const Source& source : program.sources(argument)) {
    if (source.how != Source::How::value) continue;
    const Kind kind = source.ref.kind();
    if (kind == Kind::comprehension && source.ref.text().starts_with("[")) return true;
    if (kind == Kind::list && holds_plain_values(source.ref)) return true;
    const CallRef call = program.as_call(source.ref);
    if (call && call.call->name == "list" && !call.receiver() && call.positional(0) &&
        call.positional(0).kind() == Kind::comprehension)
      return true;
  }
  return false;
}

}  // namespace

void check_list_input_split_wrongly(const Program& program, Report& report) {
  for (const auto& forward : program.forward_calls()) {
    if (forward.wrap->kind != Wrapper::data_parallel) continue;
    for (std::size_t i = 0;; ++i) {
      const Ref argument = forward.call.positional(i);
      if (!argument) break;
      if (!is_list_of_items(program, argument)) continue;
      report
          .at(argument, Confidence::likely,
              "DataParallel is given a Python list: every tensor in it is cut along its own first "
              "dimension, and numbers or strings are copied whole to every replica")
          .help = "Pad to one tensor (and a tensor of lengths), or use DistributedDataParallel.";
      break;
    }
  }
}

}  // namespace bench::pitfalls
