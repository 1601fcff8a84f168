// What runs of the laboratory show of metrics that are not reduced (DDP022).
#include "scenarios/pitfalls/judges.hpp"
#include "scenarios/pitfalls/laboratory/trial_prices.hpp"

#include <algorithm>
#include <cmath>

namespace bench::pitfalls {

namespace {

// Training ended after unequal numbers of epochs.
bool stopped_apart(const RunEvidence& run) { return ranks_differ(run, "epochs_trained"); }

}  // namespace

void judge_metric_not_reduced(const RunEvidence& run, RunReport& report) {
  if (!ranks_differ(run, "decisive_metric")) return;
  std::string message =
      "ranks decide by validation metrics of their own: " + rank_figures(run, "decisive_metric", 3);
  if (ranks_differ(run, "final_learning_rate"))
    message += "; their learning rates are " + rank_figures(run, "final_learning_rate", 5);
  if (stopped_apart(run))
    message += "; they stopped after " + rank_figures(run, "epochs_trained") + " epochs";
  Finding& finding = report.add(Confidence::certain, std::move(message));
  finding.help = "All-reduce sum and count before anything is decided.";
  finding.evidence.emplace_back("metric by rank", rank_figures(run, "decisive_metric", 4));
}

Price price_metric_not_reduced(const RunEvidence& broken, const RunEvidence& cured) {
  Price price;
  const bool apart = ranks_differ(broken, "decisive_metric");
  const bool agreed =
      cured.first("decisive_metric") != nullptr && !ranks_differ(cured, "decisive_metric");
  if (broken.first("final_learning_rate") != nullptr) {
    price.reproduced = apart && ranks_differ(broken, "weights_after");
    price.gone = agreed && !ranks_differ(cured, "weights_after");
    price.cost = rank_spread(broken, "weights_after");
    price.unit = "difference of weight sums between ranks";
    price.seen =
        "silent: each rank lowers its learning rate in epochs of its own, and the models drift "
        "apart";
  } else if (broken.first("epochs_trained") != nullptr) {
    price.reproduced = apart && !broken.hung_ranks().empty();
    price.gone = agreed && cured.hung_ranks().empty() && !stopped_apart(cured);
    price.cost = broken.document().value("limit_seconds", 0.0);
    price.unit = "s hung until the time-out";
    const std::vector<double> epochs = rank_values(broken, "epochs_trained");
    if (!epochs.empty())
      price.seen = "nothing is printed: one rank stops after " +
                   figure(*std::min_element(epochs.begin(), epochs.end())) +
                   " epochs, the other waits for it in the next";
  } else {
    price.reproduced = apart;
    price.gone = agreed && cured.number("accuracy_of_chosen") == cured.number("accuracy_of_best");
    price.cost =
        100 * std::fabs(broken.number("decisive_metric") - broken.number("accuracy_of_chosen"));
    price.unit =
        "accuracy points that rank 0's figure is wrong by (and " +
        figure(100 * (broken.number("accuracy_of_best") - broken.number("accuracy_of_chosen")), 2) +
        " points below the best checkpoint)";
    price.seen = "silent: rank 0 reports " + figure(100 * broken.number("decisive_metric")) +
                 " %, the whole set gives " + figure(100 * broken.number("accuracy_of_chosen")) +
                 " %";
  }
  return price;
}

}  // namespace bench::pitfalls
