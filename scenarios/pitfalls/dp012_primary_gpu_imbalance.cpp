#include "bench/core/units.hpp"
#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/judges.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"
#include "scenarios/pitfalls/wrappers/own_wrappers.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Kind;
using diagnose::Source;
using diagnose::Wrapper;

namespace {

// F.cross_entropy(...), and criterion(...) of nn.CrossEntropyLoss(), which is not spread over the
// GPUs itself.
bool is_loss_in_one_place(const Program& program, const CallRef& call) {
  if (call.call->api == Api::loss) return true;
  const Ref function{call.module, call.call->function};
  return function && program.comes_from(function, Api::loss) &&
         program.wrap_of(function, Wrapper::data_parallel) == nullptr;
}

bool comes_gathered(const diagnose::ForwardCall& forward) {
  return forward.wrap->kind == Wrapper::data_parallel;
}

bool takes_outputs(const Program& program, const CallRef& loss) {
  const Ref input = loss.positional(0);
  if (!input) return false;
  if (program.is_wrapped(input, Wrapper::data_parallel)) return true;
  const auto& forwards = program.forward_calls();
  const auto& sources = program.sources(input);
  return std::any_of(sources.begin(), sources.end(), [&](const Source& from) {
    return std::any_of(forwards.begin(), forwards.end(), [&](const auto& forward) {
      return forward.call.ref() == from.ref && comes_gathered(forward);
    });
  });
}

// logits.view(-1, vocabulary), shifted[..., :-1, :].reshape(...), masks.permute(...): a score for
// each token or pixel, where a classifier has some for each sample.
bool is_of_every_place(const Program& program, Ref output) {
  CallRef call = program.as_call(output);
  for (; call; call = program.as_call(call.receiver())) {
    const std::string_view name = call.call->name;
    if (name == "permute" || name == "interpolate" || name == "flatten") return true;
    if ((name != "view" && name != "reshape") || call.positional(0).text() != "-1") continue;
    const Ref width = call.positional(1);  // a few scores are those of a classifier
    const bool is_small = width.kind() == Kind::integer && width.text().size() <= 3;
    return width && !is_small && !says_any(width.text(), {"label", "class"});
  }
  return false;
}

bool takes_large_outputs(const Program& program, const CallRef& loss) {
  const Ref input = loss.positional(0);
  if (!input) return false;
  const auto& sources = program.sources(input);
  if (!is_of_every_place(program, input) &&
      std::none_of(sources.begin(), sources.end(),
                   [&](const Source& source) { return is_of_every_place(program, source.ref); }))
    return false;
  const auto forwards = facts::forwards_behind(program, input);
  return std::any_of(forwards.begin(), forwards.end(), comes_gathered);
}

// loss.backward() of the loss itself.
CallRef loss_of_outputs(const Program& program, Ref value) {
  for (const Source& source : program.sources(value)) {
    const CallRef call = program.as_call(source.ref);
    if (call && is_loss_in_one_place(program, call) && takes_outputs(program, call)) return call;
  }
  return {};
}

// Of one that is scaled, averaged or added to others, where its size is in sight.
CallRef loss_of_large_outputs(const Program& program, Ref value) {
  for (const Ref node : facts::calls_behind(program, value)) {
    const CallRef call = program.as_call(node);
    if (call && is_loss_in_one_place(program, call) && takes_large_outputs(program, call))
      return call;
  }
  return {};
}

}  // namespace

void check_primary_gpu_imbalance(const Program& program, Report& report) {
  const auto& wraps = program.wraps();
  if (!program.has_data_parallel() ||
      std::any_of(wraps.begin(), wraps.end(),
                  [&](const auto& wrap) { return gathers_itself(program, wrap); }))
    return;
  for (const CallRef& backward : program.calls_named("backward")) {
    const Ref value = backward.receiver();
    if (!value) continue;
    CallRef loss = loss_of_outputs(program, value);
    if (!loss) loss = loss_of_large_outputs(program, value);
    if (!loss) continue;
    Finding& finding = report.at(
        loss.ref(), Confidence::check,
        "the loss is computed on outputs gathered on the first GPU: with large outputs it "
        "runs out of memory while the others have room");
    finding.severity = Severity::info;
    finding.help = "Use DistributedDataParallel; or return the loss from forward and average it.";
    return;
  }
}

namespace {

// Peak of the primary GPU over the mean of the others; 1 where there are no others.
double imbalance_of(const RunEvidence& run) {
  const Json* peaks = run.first("peak_bytes");
  if (peaks == nullptr || peaks->size() < 2) return 1;
  double others = 0;
  for (std::size_t i = 1; i < peaks->size(); ++i) others += peaks->at(i).get<double>();
  return peaks->at(0).get<double>() / (others / static_cast<double>(peaks->size() - 1));
}

// Below this ratio of the peaks the difference costs no batch worth a line.
constexpr double kImbalance = 1.3;
// A step's memory grows no faster than its batch. While the primary GPU is no more than half full
// the batch can double, and what the other GPUs have free beyond that costs nobody anything.
constexpr double kRoomToDouble = 0.5;

// The primary GPU holds more than the others, and so much that it ends the growth of the batch.
bool primary_limits_batch(const RunEvidence& run) {
  const Json* peaks = run.first("peak_bytes");
  if (peaks == nullptr || peaks->empty() || imbalance_of(run) <= kImbalance) return false;
  return peaks->at(0).get<double>() > kRoomToDouble * run.number("memory_limit_bytes");
}

std::string percent_full(const RunEvidence& run) {
  const double peak = run.first("peak_bytes")->at(0).get<double>();
  return figure(100 * peak / run.number("memory_limit_bytes"), 0) + " %";
}

// What the primary GPU holds more of than GPU 1, largest first: "gathered_outputs +1.00 MiB, ..."
std::string surplus_by_category(const RunEvidence& run) {
  const Json* categories = run.first("peak_categories");
  if (categories == nullptr || categories->size() < 2) return {};
  std::vector<std::pair<double, std::string>> surplus;
  for (const auto& [name, bytes] : categories->at(0).items()) {
    const double more = bytes.get<double>() - categories->at(1).value(name, 0.0);
    if (more > 0) surplus.emplace_back(more, name);
  }
  std::sort(surplus.rbegin(), surplus.rend());
  std::string text;
  for (const auto& [bytes, name] : surplus)
    text +=
        (text.empty() ? "" : ", ") + name + " +" + format_bytes(static_cast<std::uint64_t>(bytes));
  return text;
}

}  // namespace

void judge_primary_gpu_imbalance(const RunEvidence& run, RunReport& report) {
  if (run.strategy() != "data_parallel" || !primary_limits_batch(run)) return;
  const std::string surplus = surplus_by_category(run);
  Finding& finding = report.add(Confidence::certain,
                                "the primary GPU is " + percent_full(run) + " full at its peak, " +
                                    figure(imbalance_of(run), 2) + " times the mean of the others" +
                                    (surplus.empty() ? "" : " (" + surplus + ")"));
  finding.help = "Use DDP; or compute the loss inside forward and average it outside.";
  finding.evidence.emplace_back("surplus of the primary GPU", surplus);
}

Price price_primary_gpu_imbalance(const RunEvidence& broken, const RunEvidence& cured) {
  Price price;
  price.reproduced = primary_limits_batch(broken);
  price.gone = imbalance_of(cured) < kImbalance && cured.first("peak_bytes") != nullptr;
  const double largest = broken.number("largest_batch");
  const double possible = cured.number("largest_batch");
  price.cost = 100 * (possible - largest) / possible;
  price.unit = "% of the largest batch (" + figure(largest) + " instead of " + figure(possible) +
               " samples fit)";
  price.seen = "out of memory on GPU 0 first: its peak is " + figure(imbalance_of(broken), 2) +
               " times the others' (" + surplus_by_category(broken) + ")";
  return price;
}

}  // namespace bench::pitfalls
