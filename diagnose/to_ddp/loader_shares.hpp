// Loaders of a DataParallel program, which read all data in batches for all GPUs, turned into the
// rank's own: a DistributedSampler, and the batch divided.
#pragma once

#include "diagnose/finding.hpp"
#include "diagnose/model/program.hpp"
#include "diagnose/to_ddp/file_names.hpp"

namespace bench::diagnose {

// The edits go to `made`. In files other than the script the loader stays as it was where there is
// no process group, for other scripts may import them. False where the call has no place for a
// sampler; nothing is changed then.
bool share_out(const Program& program, const CallRef& loader, FileNames& names, Finding& made);

// Has the sampler shuffle anew in each round of a loop that counts none: `while step < n:` and
// `for _ in range(n):` around batches of a loader that was shared out. Where the loop has a number,
// the fix of DDP018 takes it.
void count_epochs(const Program& program, const TrainingLoop& loop, Finding& made);

// The same of a loop with a number over an object that holds the loader: for batch in dataset,
// whose __iter__ goes over its self.dataloader.
void set_epochs_of_holder(const Program& program, const TrainingLoop& loop, const CallRef& loader,
                          Finding& made);

}  // namespace bench::diagnose
