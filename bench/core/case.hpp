// A Case is one point of a sweep: what is trained, how, on what. Plans are lists of cases; a worker
// gets its case as JSON (case_json.hpp).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace bench {

enum class Strategy : int;  // bench/core/strategy.hpp: only what decides by its values needs them
enum class Execute { numeric, shape };  // virtual GPUs only; cuda and cpu are always numeric
enum class DeviceKind { cuda, vgpu, cpu };
enum class DataKind { synthetic, fashion_mnist };
enum class HostProfile { cpp, python };  // python: DP's replica threads share one interpreter lock

const char* strategy_name(Strategy strategy);
const char* execute_name(Execute execute);
const char* device_kind_name(DeviceKind kind);
const char* data_kind_name(DataKind kind);
const char* host_profile_name(HostProfile profile);
// Accept canonical names and aliases (dp, ddp); nullopt when unknown.
std::optional<Strategy> parse_strategy(const std::string& text);
std::optional<Execute> parse_execute(const std::string& text);
std::optional<DeviceKind> parse_device_kind(const std::string& text);
std::optional<DataKind> parse_data_kind(const std::string& text);
std::optional<HostProfile> parse_host_profile(const std::string& text);

// A zoo name, or a TorchScript file with the shape of one sample.
struct ModelSpec {
  std::string name;  // zoo name, or the file's stem
  std::string file;  // empty for zoo models
  std::vector<std::int64_t>
      input_shape;                      // one sample, e.g. {3,224,224}; empty = the model's default
  std::string input_dtype = "float32";  // float32 | int64 (token ids)
  std::int64_t classes = 0;             // 0 = the model's default
};

// DistributedDataParallel's options, with PyTorch's defaults.
struct DdpOptions {
  // nullopt: first bucket 1 MiB, then 25 MiB. A value makes the first cap equal to it as well.
  std::optional<double> bucket_cap_mb;
  bool find_unused_parameters = false;
  bool static_graph = false;
  bool gradient_as_bucket_view = false;
  bool broadcast_buffers = true;
};

struct OptimizerSpec {
  std::string name = "sgd";  // sgd | adam
  double learning_rate = 0.01;
  double momentum = 0.9;  // sgd only
};

struct Case {
  std::string scenario;
  ModelSpec model;
  Strategy strategy{};       // single
  std::vector<int> gpus{0};  // device indices; gpus[0] is the primary device
  std::int64_t batch = 0;    // samples per optimizer step over all GPUs (global batch)
  int accumulation = 1;      // micro-batches per optimizer step
  bool no_sync = true;       // accumulate under no_sync (distributed)
  DdpOptions ddp;
  OptimizerSpec optimizer;
  DataKind data = DataKind::synthetic;
  int data_workers = 2;  // loader threads for real data
  DeviceKind device = DeviceKind::vgpu;
  Execute execute = Execute::shape;
  HostProfile host = HostProfile::cpp;
  std::string machine;  // catalogue name, "4xv100-sxm2" or TOML file; empty on real devices
  std::uint64_t device_memory_bytes = 0;  // of one GPU; 0: not known. vgpu: more of it fails
  int steps = 0;  // timed steps; 0 = the stopping rule decides (measured) or 1 (simulated)
  int warmup = 3;
  std::uint64_t seed = 1;
  // Extra name parts in order, e.g. {"bucket_mb","25"}; part of the case's name.
  std::vector<std::pair<std::string, std::string>> tags;
  // Runs only because another case needs its figures (single at the same per-GPU batch).
  bool reference_only = false;
  // Scenario pitfalls: the rule whose mistake is made. It names the case; what else is above says
  // where the mistake runs.
  std::string pitfall;

  int world_size() const { return static_cast<int>(gpus.size()); }
  int process_count() const;  // distributed: one a GPU; else 1
  // <scenario>/model:<m>/strategy:<s>/gpus:<n>/batch:<b>[/<key>:<value>...], or
  // <scenario>/<pitfall>[/<key>:<value>...]
  std::string name() const;
};

}  // namespace bench
