// Collectives that do not look like one, and that some ranks come to alone.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

// model.state_dict() of a model that FSDP shards, and its kin: every rank sends its shards.
std::vector<CallRef> gathers_of_shards(const Program& program);

// The items of `with accelerator.main_process_first():` around training: the main process reduces
// gradients while the others wait at the entrance.
std::vector<Ref> turns_around_training(const Program& program);

// The tested name is a function that the file imports and does not call: `if is_main_process:` is
// true on every rank.
bool is_uncalled_test(const Program& program, Ref condition);

// train_one_epoch(...) and trainer.train(epoch) in a loop, of files that are not there.
std::vector<CallRef> training_out_of_sight(const Program& program);

}  // namespace bench::pitfalls
