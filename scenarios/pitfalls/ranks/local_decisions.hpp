// What a decision in a training loop is made from: a value that one rank alone knows, or that
// differs from rank to rank.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

#include <string_view>
#include <vector>

namespace bench::pitfalls {

// torch.isnan(loss), loss.isfinite()
bool depends_on_local_data(std::string_view condition);

// mask.sum() == 0, after mask = ~torch.isnan(batch), found in the same round.
bool reads_local_data(const Program& program, Ref condition, Ref round);

// By its words (patience, early_stop), by an object that was made for it (es.step(loss) after
// es = EarlyStopping()), or where what an evaluation gives back is as good as it has to be.
bool stops_early(const Program& program, Ref condition);

// bad > 20, where bad counts the rounds in which a loss or a score was no better.
bool counts_bad_rounds(const Program& program, Ref condition, Ref round);

// The condition, and those under which the round raised the flag that it tests:
// if bad > patience: stop = True, and if stop: break.
std::vector<Ref> decisions_behind(const Program& program, Ref condition, Ref round);

// The condition compares a variable that the round changes under a test of the rank alone:
// if rank == 0 and score > best: best_epoch = epoch, and if epoch - best_epoch > 10: break.
bool is_kept_by_one_rank(const Program& program, Ref condition, Ref round);

// bar.n >= bar.total after bar = tqdm(..., disable=rank != 0): a bar that is off counts nothing.
bool counts_on_one_rank(const Program& program, Ref condition);

// mask.sum() == 0 of the batch that this rank was given, loss > 100 and loss != loss.
bool reads_own_batch(const Program& program, Ref condition, Ref round);

// The epoch trains by a call, in which the ranks may talk as they like: nothing that it gives comes
// into the decision, and what does is computed in sight.
bool is_beside_training(const Program& program, const CallRef& training, Ref condition, Ref round);

}  // namespace bench::pitfalls
