// batch // world_size: the remainder of the global batch is never trained on.
#include "training/pitfalls/experiments.hpp"

namespace bench::training {

void truncating_batch_division(Lab& lab) {
  constexpr int kGlobalBatch = 10;
  const int ranks = lab.world_size();
  const int whole = kGlobalBatch / ranks;
  // The cure hands the remainder out, one sample a rank.
  const int own = whole + (lab.cured() && lab.rank() < kGlobalBatch % ranks ? 1 : 0);
  lab.evidence()["global_batch"] = kGlobalBatch;
  lab.evidence()["batch_of_rank"] = own;
  lab.evidence()["samples_per_step"] = lab.all_reduce_sum(own);
}

}  // namespace bench::training
