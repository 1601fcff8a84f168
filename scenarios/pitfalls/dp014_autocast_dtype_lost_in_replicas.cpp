#include "diagnose/model/made_at.hpp"
#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/program/facts.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::ClassRef;
using diagnose::FunctionRef;
using diagnose::kNoNode;
using diagnose::Source;
using diagnose::Wrap;
using diagnose::Wrapper;

namespace {

bool forward_sets_autocast(const Program& program, const Wrap& wrap) {
  for (const ClassRef& cls : wrap.classes) {
    const FunctionRef forward = program.method(cls, "forward");
    if (!forward) continue;
    const auto parent = forward.module->tree()[forward.function->node].parent;
    if (parent != kNoNode && facts::contains(forward.module->text(parent), "autocast")) return true;
  }
  return false;
}

// The other branch of `if isinstance(model, DataParallel)`.
bool is_known_bare(const Program& program, Ref call) {
  return program.under(call, [](Ref condition, bool holds) {
    return !holds && condition.text().starts_with("isinstance(") &&
           facts::contains(condition.text(), "DataParallel");
  });
}

}  // namespace

void check_autocast_dtype_lost_in_replicas(const Program& program, Report& report) {
  for (const auto& forward : program.forward_calls()) {
    if (forward.wrap->kind != Wrapper::data_parallel) continue;
    if (facts::device_ids(program, forward.wrap->call).size() == 1) continue;
    bool other_dtypes = false;  // of other values of an option
    const auto is_cast = [&](Ref item) {
      const CallRef call = program.origin(item, Api::autocast);  // also context = autocast(...)
      if (!call) return false;
      const Ref dtype = call.keyword("dtype") ? call.keyword("dtype") : call.positional(1);
      const auto& sources = program.sources(dtype);
      const auto is_bfloat16 = [&](const Source& source) {
        return program.qualified(source.ref) == "torch.bfloat16";
      };
      other_dtypes = !std::all_of(sources.begin(), sources.end(), is_bfloat16);
      return std::any_of(sources.begin(), sources.end(), is_bfloat16);
    };
    Ref with;
    for (const Ref place : diagnose::places_of(program, forward.call.ref()))
      if (!with) with = program.enclosing_with(place, is_cast);
    if (!with || forward_sets_autocast(program, *forward.wrap) ||
        is_known_bare(program, forward.call.ref()))
      continue;
    Finding& finding = report.at(
        forward.call.ref(), Confidence::certain,
        "autocast's bfloat16 does not reach DataParallel's threads: with two or more GPUs "
        "they compute in float16");
    if (other_dtypes) tell_as_note(finding);
    finding.help =
        "Put torch.autocast(\"cuda\", dtype=torch.bfloat16) inside forward, or use "
        "DistributedDataParallel.";
  }
}

}  // namespace bench::pitfalls
