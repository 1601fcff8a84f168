// What several rules ask about data loaders: which DataLoader feeds a loop, which sampler it has,
// how many epochs a loop runs, and the edits that add what is missing.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

#include <optional>
#include <vector>

namespace bench::pitfalls {

// DataLoader(...) calls that an iterable comes from.
std::vector<CallRef> loaders_of(const Program& program, Ref iterable);

// The same, or those that a wrapper of the program goes over: loader in Moved(loader, device),
// whose __iter__ draws from it.
std::vector<CallRef> loaders_gone_over(const Program& program, Ref iterable);

// What a loop takes its batches from: loader of `for batch in loader`, batches of a while loop or a
// counted one that draws with next(batches) or batches.next(). Empty where it draws nothing.
Ref goes_over(const Program& program, Ref loop);

// DistributedSampler(...) behind the loader's sampler or batch_sampler argument; empty when none.
CallRef sampler_of(const Program& program, const CallRef& loader);

// sampler = DistributedSampler(data) if is_train else None: what evaluates is read whole by every
// rank.
bool is_sampled_for_training(const Program& program, const CallRef& loader);

// The loader has a sampler of any kind, or arguments that cannot be seen.
bool has_some_sampler(const Program& program, const CallRef& loader);

// The loader reads an IterableDataset of this program, or a webdataset-like pipeline.
bool reads_iterable_dataset(const Program& program, const CallRef& loader);

// Its name, dataset or place says that it serves validation or testing.
bool is_evaluation_loader(const Program& program, const CallRef& loader);

// train, self.is_train, opt.isTrain
bool names_training(Ref condition);

// What the loop goes over has a name that says so, whoever made it.
bool is_evaluation_loop(const Program& program, Ref loop);

// Number of rounds of `for epoch in range(n)`, when it is a literal.
std::optional<std::int64_t> epoch_count(const Program& program, Ref loop);

// Evidence: the line on which the sampler is made, and the file where it is another.
void note_sampler(const CallRef& sampler, Finding& finding);

// Adds sampler.set_epoch(epoch) as the first statement of the epoch loop, where names allow it.
void fix_set_epoch(const Program& program, const diagnose::TrainingLoop& loop,
                   const CallRef& loader, const CallRef& sampler, Finding& finding);

}  // namespace bench::pitfalls
