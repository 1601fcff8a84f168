// What `bench predict` is asked, as a list: one question for every machine, strategy, number of
// GPUs, batch and option that the flags combine. Nothing is recorded or simulated here.
#pragma once

#include "bench/core/case.hpp"
#include "bench/plan/settings.hpp"
#include "simulator/machine.hpp"
#include "simulator/what_if.hpp"

#include <optional>
#include <string>
#include <vector>

namespace bench {

struct PredictRequest {
  Settings settings;  // axes and options as everywhere else; scenario "predict"
  std::vector<std::string> machines;
  std::vector<simulator::Precision> precisions{simulator::Precision::float32};
  std::vector<simulator::BucketHook> hooks{simulator::BucketHook::none};
  std::optional<double> measured_single_ms;
  double straggler = 1;
  std::vector<double> rank_speeds;  // of DDP's ranks; those beyond the list run at 1
  std::optional<double> jitter;     // relative standard deviation between ranks
  bool exact_recordings = false;    // record every option of DDP instead of editing the default
  bool draw_jitter = false;         // from settings.seed instead of its expectation
};

struct Question {
  Case work;                // machine, GPUs and options
  std::size_t machine = 0;  // index into the loaded machines
  simulator::Precision precision = simulator::Precision::float32;
  simulator::BucketHook hook = simulator::BucketHook::none;
  std::optional<std::string> cannot;  // why there is no such run: "DataParallel is one process..."

  // The same work on one GPU with the same batch per GPU.
  Case single() const;
};

// Loads the machines. Throws UsageError naming the flag or the file.
std::vector<simulator::Machine> load_machines(const PredictRequest& request);
std::vector<Question> questions(const PredictRequest& request,
                                const std::vector<simulator::Machine>& machines);

}  // namespace bench
