// Validation: published training steps that the simulator can express, replayed from recordings.
// The single-device step is anchored to the published one; the rest is predicted.
#pragma once

#include "bench/core/case.hpp"
#include "bench/core/strategy.hpp"
#include "simulator/anchor.hpp"
#include "simulator/operation_graph.hpp"
#include "simulator/what_if.hpp"

#include <optional>
#include <string>
#include <vector>

namespace bench::simulator {

// A row of results/published/replay.csv, or of unseen.csv.
struct PublishedStep {
  std::string group;    // rows of one source and machine
  std::string machine;  // as load_machine takes it
  HostProfile host = HostProfile::python;
  std::string model;
  Strategy strategy = Strategy::data_parallel;
  int gpus = 1;
  int batch_per_gpu = 1;
  std::optional<int> tokens;  // of a sequence, where it is not the model's longest
  std::optional<double> bucket_mb;
  bool optimizer = true;        // the published step includes the optimizer
  bool pageable_input = false;  // and the copy of the input from host memory
  double single_ms = 0;
  double step_ms = 0;
  std::string apart;  // why the row contradicts its neighbours; empty for most
  std::string source;
  Precision precision = Precision::float32;
  bool adam = false;    // with Adam; else stochastic gradient descent with momentum
  bool unseen = false;  // no constant was set from it

  // What a worker has to record for this row, and for its single-device step.
  Case case_of_row() const;
  Case case_of_single() const;
};
const std::vector<PublishedStep>& published_steps();

struct Replayed {
  const PublishedStep* published = nullptr;
  double predicted_ms = 0;
  double unanchored_ms = 0;  // from data sheets alone
  double unanchored_single_ms = 0;
  Anchor anchor;  // what made the single-device step the published one
  double relative_error() const { return predicted_ms / published->step_ms - 1; }
  // Error of the ratio to the single-device step, which is what is left to judge without an anchor.
  double unanchored_ratio_error() const {
    return unanchored_ms / unanchored_single_ms / (published->step_ms / published->single_ms) - 1;
  }
};
// Constants that were fitted to published rows, as they would be without some of those rows.
struct FittedConstants {
  double replica_scale = 1;
  std::optional<double> rank_jitter;  // nullopt: the machine's
};
// `anchor`: of the same row from before, because solving for it is most of the work and no fitted
// constant changes it.
Replayed replay(const PublishedStep& row, const OperationGraph& single, const OperationGraph& graph,
                const FittedConstants& constants = {}, const std::optional<Anchor>& anchor = {});

struct ReplaySummary {
  std::string group;
  int rows = 0;           // without those that are listed apart
  double mean_error = 0;  // of absolute values
  double worst_error = 0;
  double bias = 0;  // mean of signed values
  double mean_unanchored_error = 0;
};
// By group in the order of first appearance, and all groups together at the end.
std::vector<ReplaySummary> summarize(const std::vector<Replayed>& rows);

}  // namespace bench::simulator
