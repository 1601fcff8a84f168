#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/judges.hpp"
#include "scenarios/pitfalls/metrics/metric_sums.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::ClassRef;
using diagnose::Field;
using diagnose::Kind;
using diagnose::Wrapper;

namespace {

// steps - out.size(1), also by way of names: what is missing behind the unpacked sequences.
bool takes_length_off(const Program& program, Ref value, const VariableNames& unpacked,
                      int depth = 0) {
  constexpr int kNames = 3;
  if (!value || depth > kNames) return false;
  const auto& tree = value.module->tree();
  for (diagnose::NodeId at = value.node; at < tree[value.node].last; ++at) {
    const Ref part = value.with(at);
    if (part.kind() == Kind::binary && tree[at].op == diagnose::Op::subtract) {
      const std::string taken = text_behind(program, part.child(Field::right));
      for (const std::string& name : unpacked)
        if (holds_any(taken, {name + ".size(", name + ".shape["})) return true;
    }
    if (part.kind() != Kind::identifier) continue;
    for (const diagnose::Source& source : program.sources(part))
      if (source.how == diagnose::Source::How::value && source.ref != part &&
          takes_length_off(program, source.ref, unpacked, depth + 1))
        return true;
  }
  return false;
}

// out = F.pad(out, (0, 0, 0, steps - out.size(1))), or torch.cat([out, zeros], dim=1) with zeros of
// that length, below: what comes out has the length of the input again.
bool is_padded_again(const Program& program, const CallRef& unpacked) {
  const diagnose::Module& module = *unpacked.module;
  const auto& tree = module.tree();
  const diagnose::NodeId statement = tree.ancestor(unpacked.call->node, Kind::assignment);
  const auto function = program.enclosing_function(unpacked.ref());
  if (statement == diagnose::kNoNode || !function) return false;
  const auto names = variables_in(unpacked.ref().with(tree.child(statement, Field::left)));
  for (const CallRef& call : facts::calls_in({&module, function.function->body})) {
    const std::string_view name = call.call->name;
    const bool pads = call.call->path == "torch.nn.functional.pad";
    if (call.call->node < unpacked.call->node || !call.positional(0) ||
        (!pads && name != "cat" && name != "concat"))
      continue;
    const Ref added = pads ? call.argument(1, "pad") : call.positional(0);
    if (meet(names, variables_in(call.positional(0))) && takes_length_off(program, added, names))
      return true;
  }
  return false;
}

}  // namespace

void check_rnn_under_dataparallel(const Program& program, Report& report) {
  if (!program.has_data_parallel()) return;
  const auto classes = facts::wrapped_classes(program, Wrapper::data_parallel);
  for (const CallRef& call : program.calls(Api::pad_packed)) {
    if (call.keyword("total_length") || call.positional(3) || is_padded_again(program, call))
      continue;
    const ClassRef owner = program.enclosing_class(call.ref());
    if (!owner || std::find(classes.begin(), classes.end(), owner) == classes.end()) continue;
    Finding& finding = in_no_trial(
        report.at(call.ref(), Confidence::certain,
                  "pad_packed_sequence without total_length under DataParallel: every replica pads "
                  "to its own longest sequence, and gathering them fails"));
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

namespace {

constexpr std::string_view kHiddenSize = "Expected hidden size";

// The rows of a replica's pack are not as many as its batch sizes say.
bool packs_are_torn(const RunEvidence& run) {
  const Json* rows = run.first("packed_rows");
  const Json* by_sizes = run.first("packed_rows_by_sizes");
  return rows != nullptr && by_sizes != nullptr && *rows != *by_sizes;
}

void judge_packs(const RunEvidence& run, RunReport& report) {
  if (!packs_are_torn(run)) return;
  Finding& finding = report.add(
      Confidence::certain, "DataParallel cut a PackedSequence into packs of " +
                               listed(*run.first("packed_rows")) + " rows whose batch sizes say " +
                               listed(*run.first("packed_rows_by_sizes")));
  finding.help = "Pass the padded tensor and the lengths, and pack inside forward.";
  if (const std::string error = run.text("error"); !error.empty())
    finding.evidence.emplace_back("error", error);
}

}  // namespace

void judge_rnn_under_dataparallel(const RunEvidence& run, RunReport& report) {
  judge_packs(run, report);
  const std::string error = run.error_with(kHiddenSize);
  const Json* shards = run.first("hidden_shards");
  if (error.empty() || shards == nullptr) return;
  Finding& finding = report.add(
      Confidence::certain, "DataParallel cut the hidden state along its layers, into shards of " +
                               shards->front().dump());
  finding.help = "Pass the hidden state batch first and turn it inside forward; or use DDP.";
  finding.evidence.emplace_back("error", error);
}

Price price_rnn_under_dataparallel(const RunEvidence& broken, const RunEvidence& cured) {
  Price price;
  const std::string error = broken.text("error");
  price.reproduced = !broken.error_with(kHiddenSize).empty() || packs_are_torn(broken);
  price.gone = cured.first("error") == nullptr && cured.first("output_rows") != nullptr;
  price.cost = 0;
  price.unit = "steps before the crash";
  price.seen = "RuntimeError: " + error.substr(0, error.find('\n'));
  return price;
}

}  // namespace bench::pitfalls
