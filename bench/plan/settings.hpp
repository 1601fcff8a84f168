// What a scenario file and the flags ask for, before it is known on which devices: the axes of the
// sweep and the options that all its cases share. Flags overwrite what the file said.
#pragma once

#include "bench/core/case.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace bench {

// Which numbers of GPUs a sweep visits, out of the N that --gpus selects.
enum class GpuCountRule {
  all,     // N only
  powers,  // 1, 2, 4, ... and N
  listed,  // what the file or --gpu-counts lists
};

struct Settings {
  std::string scenario;
  std::string description;

  // [sweep]: one case for each combination.
  std::vector<std::string> models;  // zoo names or TorchScript files
  std::vector<Strategy> strategies;
  std::vector<std::int64_t> batches;          // global; either these
  std::vector<std::int64_t> batches_per_gpu;  // or these
  GpuCountRule gpu_count_rule = GpuCountRule::all;
  std::vector<int> gpu_counts;  // for GpuCountRule::listed
  std::vector<int> accumulations{1};

  // [ddp]: several values of an option sweep it, for the distributed strategy only.
  std::vector<double> bucket_caps_mb;  // empty: PyTorch's 1 MiB, then 25 MiB
  std::vector<bool> find_unused_parameters{false};
  std::vector<bool> static_graph{false};
  std::vector<bool> gradient_as_bucket_view{false};
  std::vector<bool> broadcast_buffers{true};
  std::vector<bool> no_sync{true};

  // [search]: instead of listed batches, the largest that fits; 0 = no search.
  std::int64_t search_lowest_per_gpu = 1;
  std::int64_t search_highest_per_gpu = 0;

  // [model]
  std::vector<std::int64_t> input_shape;
  std::string input_dtype = "float32";
  std::int64_t classes = 0;

  // [training]
  OptimizerSpec optimizer;
  DataKind data = DataKind::synthetic;
  int data_workers = 2;
  int steps = 0;
  int warmup = 3;
  std::uint64_t seed = 1;
  Execute execute = Execute::shape;
  bool execute_given = false;
  HostProfile host = HostProfile::cpp;

  bool searches() const { return search_highest_per_gpu > 0; }
};

}  // namespace bench
