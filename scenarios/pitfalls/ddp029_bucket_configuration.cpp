#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/judges.hpp"
#include "scenarios/pitfalls/laboratory/trial_prices.hpp"

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
      Finding& finding =
          in_no_trial(report.at(cap, Confidence::certain,
                                "bucket_cap_mb=0: AssertionError \"bucket_cap_mb should be set by "
                                "now\""));
      finding.severity = Severity::error;
      finding.help = "Leave it out: the default is 25 MiB.";
    } else if (mib < kTinyMib) {
      as_in_trial(report.at(cap, Confidence::check,
                            "very small buckets: many launches, each with little to send"),
                  "tiny-buckets")
          .help = "The default is 25 MiB; tune it by a sweep.";
    } else if (mib >= kHugeMib) {
      as_in_trial(
          report.at(cap, Confidence::check,
                    "very large buckets: the reduction starts only when backward is nearly done"),
          "one-huge-bucket")
          .help = "The default is 25 MiB; tune it by a sweep.";
    }
  }
}

namespace {

// DDP's own first cap: a model above it has more than one bucket unless a setting prevents it.
constexpr double kFirstCapBytes = 1 << 20;
constexpr double kTinyBytes = 4096;  // below, the latency of a reduction outweighs its transfer
constexpr double kMany = 32;

bool has_tiny_buckets(const RunEvidence& run) {
  return run.number("bucket_count") >= kMany &&
         run.number("gradient_bytes") / run.number("bucket_count") < kTinyBytes;
}

// Nothing is reduced until every gradient exists.
bool has_no_overlap(const RunEvidence& run) {
  return run.number("gradient_bytes") > kFirstCapBytes && run.number("gradient_count") > 2 &&
         run.number("bucket_count") == 1;
}

bool has_tiny_parameters(const RunEvidence& run) {
  constexpr double kSmallMean = 1024;  // bytes
  return run.number("gradient_count") >= 16 * kMany &&
         run.number("gradient_bytes") / run.number("gradient_count") < kSmallMean;
}

bool badly_bucketed(const RunEvidence& run) {
  return has_tiny_buckets(run) || has_no_overlap(run) || has_tiny_parameters(run);
}

}  // namespace

void judge_bucket_configuration(const RunEvidence& run, RunReport& report) {
  const std::string buckets = figure(run.number("bucket_count"));
  if (has_tiny_buckets(run))
    report
        .add(Confidence::certain, buckets + " buckets for " + figure(run.number("gradient_bytes")) +
                                      " bytes of gradients: every step pays for so many "
                                      "reductions")
        .help = "Leave bucket_cap_mb at 25.";
  if (has_no_overlap(run))
    report
        .add(Confidence::certain,
             "one bucket holds all gradients: the first reduction starts when " +
                 figure(run.number("gradients_at_first_reduction")) + " of " +
                 figure(run.number("gradient_count")) +
                 " gradients exist, and overlaps with nothing")
        .help = "Leave bucket_cap_mb at 25.";
  if (has_tiny_parameters(run))
    report
        .add(Confidence::likely, figure(run.number("gradient_count")) + " parameters hold " +
                                     figure(run.number("gradient_bytes")) +
                                     " bytes: their handling outweighs their arithmetic")
        .help = "Keep small values in one parameter and use its slices.";
}

Price price_bucket_configuration(const RunEvidence& broken, const RunEvidence& cured) {
  Price price;
  const double milliseconds = 1e3 * broken.number("median_step_seconds");
  const double right = 1e3 * cured.number("median_step_seconds");
  price.reproduced = badly_bucketed(broken);
  price.gone = cured.first("bucket_count") != nullptr && !badly_bucketed(cured);
  if (has_no_overlap(broken)) {
    price.cost =
        100 * broken.number("gradients_at_first_reduction") / broken.number("gradient_count");
    price.unit = "% of backward done before the first reduction, instead of " +
                 figure(100 * cured.number("gradients_at_first_reduction") /
                        cured.number("gradient_count")) +
                 " %";
  } else {
    // Fewer reductions are less work, and the times of this host's run say so.
    price.reproduced = price.reproduced && milliseconds > right;
    price.cost = milliseconds - right;
    price.unit = "ms more per step (median " + figure(milliseconds, 2) + " ms instead of " +
                 figure(right, 2) + " ms on loopback)";
  }
  price.seen = "silent: " + figure(broken.number("bucket_count")) + " buckets for " +
               figure(broken.number("gradient_count")) + " parameters instead of " +
               figure(cured.number("bucket_count")) + " for " +
               figure(cured.number("gradient_count"));
  return price;
}

}  // namespace bench::pitfalls
