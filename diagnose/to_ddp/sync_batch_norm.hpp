// BatchNorm that a callback keeps alike between the replicas of DataParallel, of a package that
// many projects hold a copy of: DataParallelWithCallback, patch_replication_callback(model),
// convert_model(model). DDP makes no replicas; PyTorch's SyncBatchNorm does the same between ranks.
#pragma once

#include "diagnose/to_ddp/reached_code.hpp"

#include <vector>

namespace bench::diagnose {

// class DataParallelWithCallback(DataParallel), which runs callbacks behind replicate() and is
// PyTorch's in all else.
bool only_runs_callbacks(const Program& program, const ClassRef& own);

// The file is one of the package's, which serves DataParallel and may stay as it is.
bool is_of_old_sync(const Program& program, const Module& file);

// if isinstance(module, DataParallel): DataParallelWithCallback(...): around the model of another
// wrapper, which the script has to make first.
bool wraps_again(const Program& program, const Wrap& wrap);

struct OldSync {
  std::vector<CallRef> callbacks;    // patch_replication_callback(model)
  std::vector<CallRef> conversions;  // convert_model(model)
};

OldSync old_sync_of(const ReachedCode& reached);

// The layers of what is wrapped are kept alike by that callback.
bool synchronises(const Program& program, const Wrap& wrap, const OldSync& old);

}  // namespace bench::diagnose
