// What a run shows about itself, as its rules see it: one JSON document per run, with one object
// per process. The pitfall laboratory writes such documents (training/pitfalls), and so does the
// harness for every other scenario; a rule reads the keys that it needs and is silent where they
// are missing, so that every rule can judge every run.
//
// Document: name, strategy (data_parallel, distributed, ...), gpus, ranks: [...]. Keys of a rank:
//   end, phase          how the process ended (rank_exit.hpp's names) and where; absent: finished
//   error               the exception's own text, where the run raised one
//   epochs              epoch_orders: a hash of the sample order of each epoch; shuffled: bool
//   indices             samples that this rank trained on in its first epoch; dataset_size
//   sampler_replicas, sampler_rank   what the sampler was told
//   batches             batches that this rank's own data gives in an epoch
//   steps               optimizer steps that were finished
//   collectives         the rank's collectives in order: ["all_reduce 512", ...] (bytes)
//   shards              samples per GPU in one forward pass of DataParallel; batch
//   inputs, outputs     shapes of one DataParallel call's arguments and of what it returned: sizes,
//                       {"list": [...]}, or null for no tensor; replica_inputs: the arguments as
//                       each replica saw them
//   rows_compared, rows_apart   rows of an output, and those that are not what one GPU computes;
//                       penalty, penalty_of_weights: the same for a sum over the weights
//   packed_rows, packed_rows_by_sizes   of the PackedSequence of each replica
//   peak_bytes          by GPU: bytes at the peak; peak_categories: the same by category;
//                       memory_limit_bytes: of one GPU
//   gradients           by parameter: sum of the gradient after backward
//   accuracy            validation accuracy by seed, in [0, 1]
//   gradient_sum        of the first parameter; step_gradient_sum, changed_gradient_sum: at the
//                       step, and of what parameters_changed_after_wrap names
//   weights_after       sum of the first parameter's values at the end; optimizer_steps, reductions
//   forward_in_no_sync, backward_in_no_sync   by micro-batch; micro_batches: accumulated for a step
//   forwards_per_backward, grad_in_training_forward, static_graph   how the loop calls the wrapper
//   saved_keys, wanted_keys, keys_loaded      names in a checkpoint and in the model that loads it
//   paths_written, bytes_written, checkpoint_bytes_by_gpu, own_gpu   what checkpoints touch
//   decisive_metric     the validation figure by which this rank decides; epochs_trained,
//                       final_learning_rate: what follows from it
//   rank_batch, total_batch_meant, global_batch, learning_rate, batch_of_one_process,
//   rate_of_one_process                       how batch and rate grew
//   probe_output, replica_probe_outputs       mean square of what one sample became in batch norm;
//                       running_mean, running_variance: sums of its buffers
//   optimizer_parameters, optimizer_parameters_in_model   that it updates, and that the model has
//   loss_scale, gradient_norm, norm_seen_by_clip, norm_applied   around gradient clipping
//   crops_hash, dropout_hash, train_split, validation_split      what seeds decided
//   bucket_count, gradient_count, gradient_bytes, gradients_at_first_reduction   of the last step
//   warnings            PyTorch's own, each time it was raised
//   data_wait_seconds, training_seconds, loader_workers, cores   what loaders cost
//   compute_seconds, wall_seconds             medians of a step: before its first collective, all
//   world_size_expected, processes_started, rendezvous_seconds   the start of a job
// A pitfall that needs another key documents it here.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bench::pitfalls {

using Json = nlohmann::json;

class RunEvidence {
 public:
  explicit RunEvidence(Json document);

  const Json& document() const { return document_; }
  std::string name() const { return document_.value("name", std::string()); }
  std::string strategy() const { return document_.value("strategy", std::string()); }
  std::size_t gpus() const { return document_.value("gpus", std::size_t{0}); }
  // One object per process, in rank order.
  const Json& ranks() const { return ranks_; }

  // The key's value on every rank, in rank order; empty unless every rank has it.
  std::vector<Json> of_every_rank(std::string_view key) const;
  // The key's value on the first rank that has it; null where none has.
  const Json* first(std::string_view key) const;
  // The same as a number, or NaN; as a text, or "".
  double number(std::string_view key) const;
  std::string text(std::string_view key) const;
  // The error of the first rank whose text holds `part`; "" where none does.
  std::string error_with(std::string_view part) const;
  // Ranks that gave no sign of life until the time-out ended them.
  std::vector<int> hung_ranks() const;

 private:
  Json document_;
  Json ranks_;
};

// Takes what one rule reports about one run.
class RunReport {
 public:
  RunReport(const Rule& rule, const RunEvidence& run, std::vector<Finding>& out)
      : rule_(rule), run_(run), out_(out) {}

  Finding& add(Confidence confidence, std::string message);

 private:
  const Rule& rule_;
  const RunEvidence& run_;
  std::vector<Finding>& out_;
};

// What all rules find in a run, in the order of the rules.
std::vector<Finding> judge_run(const RunEvidence& run);

// Whether all values are the same; true where there are none.
bool ranks_agree(const std::vector<Json>& values);
// "3, 4, 5"
std::string listed(const Json& array);
// A figure for people: "12.5", "3", without needless digits.
std::string figure(double value, int decimals = 1);

}  // namespace bench::pitfalls
