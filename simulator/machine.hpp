// The machine that a step is simulated on: one kind of GPU, how a node wires its GPUs together, how
// many nodes there are, and the collectives that somebody measured on it. Every figure carries its
// provenance, because a prediction is worth no more than what it was made from.
//
// Units: bandwidths are GB/s (10^9 bytes per second, which is bytes per nanosecond) per direction,
// rates are TFLOPS, latencies are nanoseconds.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace bench::simulator {

// Ordered from best to worst; the provenance of a result is the worst of what it used.
enum class Provenance : std::uint8_t { measured, scaled, specification, recalled };
const char* provenance_name(Provenance provenance);

struct Quantity {
  double value = 0;
  Provenance provenance = Provenance::specification;
  operator double() const {
    return value;
  }  // NOLINT(google-explicit-constructor): reads as a number
};

// Share of the peak by the microseconds that an operation would take at the peak. Log-log linear
// and constant beyond its ends; x / y ascends, so that a faster peak never makes an operation
// slower. An empty curve is 1 everywhere.
struct EfficiencyCurve {
  std::vector<std::pair<double, double>> points;  // x ascending, efficiency in (0, 1]
  double at(double x) const;
};

struct GpuSpec {
  std::string name;   // "v100-sxm2", the file's stem
  std::string title;  // "V100 SXM2"
  std::string source;
  double compute_capability = 0;

  Quantity memory_gib;
  Quantity memory_bandwidth;  // GB/s
  Quantity fp32_tflops;
  Quantity tf32_tflops;  // 0: no TF32; convolutions use it where it exists
  Quantity fp16_tflops;  // 0: computes at the fp32 rate
  Quantity bf16_tflops;  // 0: computes at the fp32 rate
  Quantity launch_ns;    // least time one kernel occupies its stream
  Quantity context_gib;  // CUDA context, cuBLAS and cuDNN workspaces outside the allocator
  Quantity
      overlap_slowdown;  // share of a collective's time that it takes from the kernels beside it
  EfficiencyCurve matrix_efficiency;
  EfficiencyCurve convolution_efficiency;
  EfficiencyCurve memory_efficiency;
  // 16-bit arithmetic, where its curves are known apart; empty: the curves above.
  EfficiencyCurve matrix_efficiency_16bit;
  EfficiencyCurve convolution_efficiency_16bit;
  // Convolutions in groups fill the GPU badly: a group of this many channels reaches half of what
  // an ungrouped convolution does. From resnext50 against resnet50 on V100 (0.145 s and 0.097 s at
  // batch 32, pytorch benchmarks/distributed/ddp/README.md).
  double grouped_halfway = 70;
  // One channel per group runs PyTorch's own depthwise kernels, bound by memory more than by
  // anything.
  double depthwise_share = 0.04;
  // Operators that take this many times what the curves say ("aten::native_batch_norm" reads its
  // input twice), where somebody measured them.
  std::map<std::string, double, std::less<>> operator_factors;

  std::int32_t nvlink_links = 0;
  Quantity nvlink_bandwidth;  // GB/s per link and direction as NCCL reaches it
  std::int32_t pcie_generation = 3;
  std::int32_t pcie_lanes = 16;
  Quantity pcie_bandwidth;         // GB/s per direction as NCCL reaches it
  bool reduces_in_switch = false;  // NVLS: the NVSwitch adds (Hopper and later)

  std::uint64_t memory_bytes() const;
};

enum class NvlinkKind : std::uint8_t { none, mesh, nvswitch };

struct NvlinkPair {
  std::int32_t a = 0;
  std::int32_t b = 0;
  std::int32_t links = 1;
};

struct NodeSpec {
  std::string name;
  std::string title;
  std::string source;
  std::int32_t gpus = 1;
  NvlinkKind nvlink = NvlinkKind::none;
  std::vector<NvlinkPair> nvlink_pairs;  // mesh: bridges and cube meshes
  bool peer_to_peer = true;              // over PCIe; off: copies are staged through the host
  bool peer_to_peer_across_sockets = true;
  std::vector<std::vector<std::int32_t>> pcie_switches;  // GPUs behind one switch (or root port)
  std::vector<std::int32_t> switch_socket;               // socket of each switch
  std::int32_t sockets = 1;
  Quantity socket_bandwidth;       // GB/s between sockets, per direction
  Quantity staged_bandwidth;       // GB/s of one host-staged GPU-to-GPU stream
  bool intel_p2p_penalty = false;  // peer traffic through the root complex costs 6/5
  std::int32_t nics = 0;
  std::vector<std::int32_t> nic_switch;  // switch of each NIC; empty: spread evenly over the GPUs
  Quantity nic_bandwidth;                // GB/s of one NIC
  Quantity nic_latency_ns;
  Quantity host_slowdown{1, Provenance::specification};  // host costs relative to the reference CPU
  Quantity rank_jitter;  // relative standard deviation of step times between equal ranks
};

// Published or calibrated all-reduce times of one system, with what NCCL's model needs to know of
// it, so that the curve can be carried to other rank counts and other wiring.
struct CollectiveCurve {
  std::string name;
  std::string source;
  std::int32_t ranks = 0;
  std::int32_t nodes = 1;
  double compute_capability = 0;
  double ring_gb_per_s = 0;     // what one GPU sends to its neighbour inside a node
  double network_gb_per_s = 0;  // what one node sends to the next
  bool nvlink = true;
  bool reduces_in_switch = false;
  Provenance provenance = Provenance::measured;
  std::vector<std::pair<double, double>> points;  // payload bytes ascending, time in ns
};

struct Machine {
  std::string name;   // as it was asked for
  std::string title;  // for people: "2 x DGX A100 (16 x A100 40GB SXM4)"
  GpuSpec gpu;
  NodeSpec node;
  std::int32_t node_count = 1;
  std::vector<CollectiveCurve> collectives;
  // Nodes of several kinds, each a machine of its own kind; GPUs are counted through them in this
  // order. Empty where all nodes are alike; else gpu, node and collectives are those of the first.
  std::vector<Machine> groups;

  std::int32_t gpu_count() const;
  // The worst provenance among the figures every simulation uses.
  Provenance provenance() const;
};

// A GPU ("v100-sxm2" is one of them), "<count>x<gpu>", a node, "<nodes>x<node>", or a TOML file.
// Throws UsageError: unknown names list the nearest ones, a bad file is named with its line.
Machine load_machine(const std::string& name_or_path);

struct MachineCatalogEntry {
  std::string name;
  std::string kind;  // "gpu" or "node"
  std::string title;
  std::int32_t gpus = 1;
  std::string gpu;        // GPU name
  double memory_gib = 0;  // of one GPU
  std::string source;
};
std::vector<MachineCatalogEntry> machine_catalog();

// Every measured all-reduce of the catalogue.
std::vector<CollectiveCurve> collective_catalog();

// The text of a catalogue file ("gpus/v100-sxm2.toml"), to copy and edit; empty when unknown.
std::string machine_file_text(const std::string& catalog_path);

}  // namespace bench::simulator
