// The topics of "Left to you" that no rule speaks of: each looks at the rewritten program and tells
// what it shows. One topic is one function, in a file with its kin, and one line in remaining.cpp.
#pragma once

#include "diagnose/finding.hpp"
#include "diagnose/to_ddp/reached_code.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace bench::diagnose {

// What comes of it, where nobody does anything.
enum class Harm : std::uint8_t { stops, may_stop, figures, waste };

struct Told {
  Harm harm = Harm::figures;
  std::vector<Ref> places;  // the same text is true of each
  std::string text;
};

class Left {
 public:
  Left(const ReachedCode& reached, const std::vector<Finding>& found, std::int64_t ranks = 0)
      : reached(reached), program(reached.program()), found(found), ranks(ranks) {}

  // Nothing is told without a place.
  void tell(Harm harm, std::vector<Ref> places, std::string text);
  // A rule says something of this line.
  bool is_found(Ref place, std::string_view rule) const;
  // The script comes by, by calls that can be followed; in a file that only offers what it has, by
  // whoever uses it.
  bool is_run(Ref place) const;
  // The same, and no test of the rank is around it.
  bool runs_on_every_rank(Ref place) const;
  // An entry names the place, or something in it.
  bool is_told(Ref place) const;
  // Something is trained in sight, or may be where nothing is seen.
  bool trains() const;

  const ReachedCode& reached;
  const Program& program;
  const std::vector<Finding>& found;
  const std::int64_t ranks;  // that the launch line starts; 0 where it leaves the number open
  std::vector<Told> told;
};

// "utils.py:12", for places named within a text.
std::string place_of(Ref node);

// --- data (data.cpp, epochs.cpp, batches.cpp, splits.cpp, draws.cpp, counts.cpp)
void tell_unshared_data(Left& left);          // training that goes over all the data on every rank
void tell_passes_over_shares(Left& left);     // a statistic of the training data, on each rank
void tell_recut_batches(Left& left);          // a collate_fn that cuts a batch into several
void tell_batch_of_all(Left& left);           // batch_size * number of GPUs, on each rank
void tell_whole_batches(Left& left);          // a batch of one on each rank
void tell_undividable_batches(Left& left);    // 30 by 4 ranks
void tell_other_uses_of_batch(Left& left);    // noise and masks of the whole batch's size
void tell_missing_epochs(Left& left);         // set_epoch is neither called nor told by a rule
void tell_counts_of_samples(Left& left);      // seen += x.size(0), which the schedule goes by
void tell_unseeded_splits(Left& left);        // folds that each rank draws for itself
void tell_noise_of_one_seed(Left& left);      // torch.randn, alike on all ranks
void tell_orders_of_ranks(Left& left);        // a data set that each rank shuffles for itself
bool has_sharded_training(const Left& left);  // some loop has nothing but shared-out data

// --- files (files.cpp, saves.cpp, names.cpp, changes.cpp)
void tell_trackers(Left& left);              // SummaryWriter, wandb.init on every rank
void tell_written_files(Left& left);         // open(path, "w"), savefig on every rank
void tell_downloads(Left& left);             // download=True on every rank
void tell_saves(Left& left);                 // checkpoints that every rank writes
void tell_saves_out_of_sight(Left& left);    // by what is not there, and is given the model
void tell_pickled_wrappers(Left& left);      // what a call gives, with the wrapper in it
void tell_reads_of_saved(Left& left);        // what rank 0 has written, and every rank uses at once
void tell_changed_keys(Left& left);          // module. before keys that had none
void tell_keys_of_others(Left& left);        // the same, of files that other scripts write
void tell_old_tests_of_gpus(Left& left);     // model.module if n_gpu > 1 else model
void tell_names_by_clock(Left& left);        // a path that each rank names by its own clock
void tell_names_by_draw(Left& left);         // by chance
void tell_names_by_number(Left& left);       // by what is there already
void tell_removals(Left& left);              // files that every rank removes
void tell_copies(Left& left);                // copies, moves
void tell_commands(Left& left);              // os.system("rm -r out")
void tell_refusals_of_existing(Left& left);  // if os.path.exists(out): raise

// --- models (layers.cpp, forwards.cpp, models.cpp, wrappers.cpp, attributes.cpp,
// parameters.cpp, devices.cpp)
void tell_weights_of_each_rank(Left& left);  // model.module.fc.weight.data.copy_(centers)
void tell_unused_parameters(Left& left);     // find_unused_parameters, where nothing is known
void tell_repeated_forwards(Left& left);     // two passes before one backward
std::vector<Ref> repeated_forwards(const Left& left);  // those passes
bool wraps_in_data_parallel(const Left& left);         // where ranks come by, over several GPUs
void tell_bare_models(Left& left);                     // trained beside the wrapped one
void tell_parameters_of_first_batch(Left& left);       // ActNorm, which starts by its first input
void tell_attributes_of_handed_models(Left& left);  // model.encode where the wrapper is handed on
void tell_optional_wrapper(Left& left);             // a wrapper under an option
void tell_bare_branches(Left& left);                // one that other branches leave out
void tell_type_tests(Left& left);                   // isinstance(model, DataParallel), now false
void tell_needs_of_data_parallel(Left& left);       // patch_replication_callback(model)
void tell_repeated_wrappers(Left& left);            // a wrapper around a wrapper, in each round
void tell_passes_beside_forward(Left& left);        // net.encode(x) of a wrapped net, in training
void tell_passes_around_wrapper(Left& left);        // gan.critic_loss(x) of the bare gan
std::vector<Ref> passes_beside_forward(const Left& left);
void tell_lists_of_gpus(Left& left);         // Head(device_id=[0, 1, 2])
void tell_moves_to_cpu(Left& left);          // model.cpu() behind the wrapper
void tell_fixed_devices(Left& left);         // cuda:0, for all ranks
void tell_devices_out_of_sight(Left& left);  // config.device, which nothing in sight sets
void tell_early_gpu_uses(Left& left);        // .cuda() where a file is imported
void tell_visible_devices(Left& left);       // CUDA_VISIBLE_DEVICES, set by the script

// --- figures (losses.cpp, decisions.cpp)
void tell_losses_of_batch(Left& left);      // contrastive losses and their kin
void tell_summed_losses(Left& left);        // reduction="sum"
void tell_means_divided_again(Left& left);  // cross_entropy(x, y) / len(x)
void tell_early_stops(Left& left);          // break on a rank's own figure
void tell_plateau_steps(Left& left);        // ReduceLROnPlateau on a rank's own figure
void tell_swallowed_steps(Left& left);      // except RuntimeError: continue
void tell_hidden_failures(Left& left);      // except: around the training, which no one sees
void tell_questions(Left& left);            // input("Overwrite? ")
void tell_evaluation(Left& left);           // every rank evaluates all the data

// --- findings of rules (rules.cpp)
// Those that are the author's to mend, and true of the ranks.
std::vector<const Finding*> findings_left(const Left& left);
Harm harm_of(const Finding& finding);

}  // namespace bench::diagnose
