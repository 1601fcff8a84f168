// How some ranks leave a round of training that the others stay in: under a test of the rank, after
// an error that they alone meet, by ending their process.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

// Ranks train here although no wrapper is in sight: the program asks for its process group, and the
// model comes from elsewhere.
bool trains_what_others_wrap(const Program& program);

// The loop over batches, or one that steps several times on what such a loop gave.
bool steps_in(const Program& program, const diagnose::TrainingLoop& loop, Ref around);

// A statement under the guard that only some ranks come to, and none of its kind in the same loop
// that the others come to.
bool leaves_on_some_ranks(const Program& program, const diagnose::Guard& guard, Ref statement,
                          Ref round);

// Something is still to come in the round that the ranks meet in: a backward pass, or another way
// out of the rounds, which the ranks that skip it do not take.
bool skips_a_meeting(const Program& program, const diagnose::TrainingLoop& loop, Ref statement,
                     Ref round);

// The loss of the round's own batch: what it is made from has a name that the loop gives. Not a
// norm of gradients, which are reduced, a figure of an evaluation, or what the ranks have agreed
// on.
bool is_loss_of_batch(const Program& program, Ref condition, Ref round);

// shown = reduce_tensor(loss) below the statement in the same round, under no other question than
// whether there are several ranks.
bool reduces_below(const Program& program, Ref statement, Ref round);

// try: ... except Exception: continue, above or around the backward pass: the rank that meets the
// error makes a step less. An iterator that is at its end is so on every rank.
bool swallows_errors(const Program& program, Ref statement, const diagnose::TrainingLoop& loop,
                     Ref round);

// sys.exit(0) in the loop over batches or epochs: the process ends as if all were well, so that no
// launcher stops the others. The calls, each with the round that it leaves.
struct QuietEnd {
  CallRef call;
  Ref round;
  bool of_epochs = false;
};
std::vector<QuietEnd> quiet_ends(const Program& program, const diagnose::TrainingLoop& loop);

// if rank == 0: exit(), and nothing else in the round ends it.
bool ends_on_some_ranks(const Program& program, const QuietEnd& end);

}  // namespace bench::pitfalls
