// Validation against published runs without a single-device step: the step of one run over that of
// another, which differs in the strategy, the interconnect or the number of GPUs.
#pragma once

#include "bench/core/case.hpp"
#include "bench/core/strategy.hpp"
#include "simulator/operation_graph.hpp"

#include <cmath>
#include <optional>
#include <string>
#include <vector>

namespace bench::simulator {

struct RatioSide {
  std::string machine;  // as load_machine takes it
  Strategy strategy = Strategy::distributed;
  int gpus = 1;
};

// A row of results/published/ratios.csv.
struct PublishedRatio {
  std::string group;
  std::string question;  // what the two runs differ in
  RatioSide side;
  RatioSide base;
  HostProfile host = HostProfile::python;
  std::string model;
  int batch_per_gpu = 1;
  bool adam = false;
  bool find_unused_parameters = false;  // under DistributedDataParallel
  double ratio = 1;                     // step of `side` over step of `base`
  std::optional<double> base_ms;        // where it is published
  std::string tuned;                    // the constant that was set from it; empty: none
  std::string source;

  // What a worker has to record for a side.
  Case case_of(const RatioSide& which) const;
};
const std::vector<PublishedRatio>& published_ratios();

struct ReplayedRatio {
  const PublishedRatio* published = nullptr;
  double unanchored = 1;           // from data sheets alone
  std::optional<double> anchored;  // with the step of `base` made the published one
  double predicted() const { return anchored.value_or(unanchored); }
  double relative_error() const { return predicted() / published->ratio - 1; }
  double unanchored_error() const { return unanchored / published->ratio - 1; }
};
ReplayedRatio replay_ratio(const PublishedRatio& row, const OperationGraph& side,
                           const OperationGraph& base);

}  // namespace bench::simulator
