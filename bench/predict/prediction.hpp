// The answer to one question: step time and what it is spent on, throughput, scaling, memory, how
// far off it may be and what it was made from. Always simulated.
#pragma once

#include "bench/predict/memory_fit.hpp"
#include "bench/predict/memory_over_time.hpp"
#include "bench/predict/questions.hpp"
#include "bench/predict/recording_store.hpp"
#include "simulator/anchor.hpp"
#include "simulator/simulate.hpp"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace bench {

// Ranks of one speed, and how long they wait for the slowest in every step.
struct SpeedClass {
  std::string node;  // title of their kind of node, where the machine has several
  double speed = 1;  // of --rank-speeds; of kinds of nodes, relative to the slowest
  int ranks = 0;
  double waits_ms = 0;
};

struct Prediction {
  Question question;
  double step_ms = 0;
  double samples_per_second = 0;
  double single_ms = 0;           // one GPU at the same batch per GPU
  double scaling_efficiency = 0;  // throughput over GPUs times the single device's
  // Where the step goes, mean over the GPUs; the parts add up to the step.
  double compute_ms = 0;
  double exposed_communication_ms = 0;
  double exposed_copy_ms = 0;
  double host_ms = 0;
  double idle_ms = 0;
  double comm_overlap = 1;  // share of communication that hides behind compute
  std::uint64_t bytes_communicated = 0;
  std::vector<SpeedClass> speed_classes;  // where ranks are unequal
  std::vector<MemoryFit> memory;  // the primary GPU, and under DataParallel the fullest other
  // Tensors in use on the primary GPU, thinned out.
  std::vector<profiling::MemorySample> memory_over_time;
  std::optional<std::int64_t> max_batch_per_gpu;  // where it was asked for
  simulator::ErrorBand error;

  const Case& work() const { return question.work; }
  bool has_figures() const { return !question.cannot.has_value(); }
  bool fits() const;
};

// Where the figures of a machine come from, one line each: "fp32 rate: specification, 19.5 TFLOPS".
std::vector<std::string> inputs_of(const simulator::Machine& machine, bool anchored);

class Predictor {
 public:
  Predictor(const PredictRequest& request, const std::vector<simulator::Machine>& machines,
            RecordingStore& store);

  // Records what is missing for all of them at once.
  std::vector<Prediction> answer(const std::vector<Question>& all);
  // The largest batch per GPU that fits; 0 when not even one sample does.
  std::int64_t max_batch_per_gpu(const Question& question);

 private:
  Prediction predict(const Question& question);
  simulator::OperationGraph edited(const Question& question, const Case& work);
  Case recorded_for(const Case& work) const;
  simulator::OperationGraph recorded(const Case& work);
  simulator::SimulationOptions options_for(const Question& question);
  // Of the same machine, model, batch per GPU and precision: solved and simulated once.
  const simulator::Anchor& anchor_of(const Question& question,
                                     const simulator::SimulationOptions& options);
  double single_ms(const Question& question, const simulator::SimulationOptions& options);
  bool fits_at(const Question& question, std::int64_t per_gpu);
  void add_speed_classes(Prediction& prediction) const;
  void add_step(Prediction& prediction, const simulator::SimulationOptions& options);
  static void add_node_classes(Prediction& prediction,
                               const std::vector<simulator::GroupSimulation>& groups);
  void add_memory(Prediction& prediction, const simulator::OperationGraph& graph) const;

  const PredictRequest& request_;
  const std::vector<simulator::Machine>& machines_;
  RecordingStore& store_;
  std::map<std::string, simulator::Anchor> anchors_;
  std::map<std::string, double> singles_;
};

}  // namespace bench
