// The parts of a DataParallel program that DDP asks to be otherwise, in the script and in the files
// that it imports.
#pragma once

#include "diagnose/model/program.hpp"
#include "diagnose/to_ddp/rank_devices.hpp"
#include "diagnose/to_ddp/reached_code.hpp"
#include "diagnose/to_ddp/sync_batch_norm.hpp"

#include <string>
#include <vector>

namespace bench::diagnose {

// A condition around a wrapper that asks how many GPUs the process has: `if len(gpus) > 1`. Under
// DDP it has one, and the wrapper is made wherever there is a process group.
struct GpuCondition {
  Ref condition;
  bool holds = true;  // the wrapper stands in the branch where it does
};

struct Parts {
  std::vector<const Wrap*> wraps;  // DataParallel calls that the script comes by
  std::vector<const Wrap*>
      empty_wraps;  // those around what has no gradients: losses, frozen models
  std::vector<const Wrap*> maybe_frozen;  // those of `wraps` around what some runs freeze
  std::vector<const Wrap*> idle_wraps;    // those around what nothing trains: networks that judge
  std::vector<CallRef> loaders;           // without a sampler, that training alone draws from
  std::vector<FixedDevice> devices;       // written as one number for all
  std::vector<CallRef> saves;             // of the script, by every rank
  std::vector<Ref> type_tests;            // nn.DataParallel in isinstance(model, nn.DataParallel)
  std::vector<Ref> gpu_choices;           // os.environ["CUDA_VISIBLE_DEVICES"] = "0,1"
  std::vector<GpuCondition> conditions;   // around `wraps`
  OldSync old_sync;                       // BatchNorm that replicas synchronise
  std::vector<std::string> launch_flags;  // without which it wraps nothing, or uses no GPU
};

Parts parts_of(const ReachedCode& reached);

}  // namespace bench::diagnose
