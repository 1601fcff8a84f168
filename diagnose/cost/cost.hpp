// What a pitfall costs, from one of three sources, each named in the words themselves: computed
// from what the script says, predicted by simulating the script's own model, or measured by the
// laboratory on its small trials. A finding carries at most one: the most specific.
#pragma once

#include "diagnose/cost/workload.hpp"
#include "diagnose/finding.hpp"

#include <functional>
#include <string>
#include <vector>

namespace bench::diagnose {

// Everything a prediction needs is known for findings that get one of these.
struct CostQuestion {
  std::string rule;  // id
  Workload workload;
};

// Answers in the order of the questions; an empty answer leaves the finding as it is. Predictions
// start a worker and simulate, so that they are made only where they are asked for.
using CostPredictor =
    std::function<std::vector<std::string>(const std::vector<CostQuestion>& questions)>;

// Adds what is known without running anything: the workload to the findings that have a use for it,
// computed costs, and the laboratory's.
void attach_costs(const Program& program, std::vector<Finding>& findings);

// Replaces them by predictions where these can be made, and says where they cannot, and why. Equal
// questions are asked once.
void predict_costs(std::vector<Finding>& findings, const CostPredictor& predict);

}  // namespace bench::diagnose
