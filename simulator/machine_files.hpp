// TOML descriptions of GPUs, nodes, links and measured collectives -> the structs of machine.hpp.
// The files in simulator/machines/ document the format; a user's file follows the same rules.
#pragma once

#include "simulator/machine.hpp"
#include "simulator/toml_section.hpp"

#include <functional>
#include <string>
#include <vector>

namespace bench::simulator {

// Nothing that computes or carries is slower or faster than this: a slip of the pen is told where
// it stands, not after it made a step take centuries.
inline constexpr double kLeastRate = 1e-6;  // GB/s and TFLOPS
inline constexpr double kMaxGbPerSecond = 1e6;
inline constexpr double kMaxLatencyUs = 1e6;

// A link of the catalogue: PCIe generations, socket links, network adapters.
struct LinkSpec {
  Quantity bandwidth;  // GB/s per direction as NCCL reaches it
  Quantity latency_ns;
};

// How a GPU is wired when only a count of it is given ("4xv100-sxm2").
struct DefaultWiring {
  std::string node;  // the first GPUs of this catalogue node; empty = plain PCIe
  bool peer_to_peer = true;
  std::string where;  // of `node`, for messages
};

// What is left of a PCIe link when copies between GPUs go through host memory. Published: 0.28 (two
// TITAN RTX, HF perf_train_gpu_many, from the difference of its two DDP runs) and 0.6 (8x RTX 5090,
// NVIDIA/nccl #1639).
inline constexpr double kStagedShare = 0.4;
// DDP's published steps on V100 grow from 1 to 8 ranks by more than their communication; ranks that
// differ by this much explain it (pytorch benchmarks/distributed/ddp/README.md).
inline constexpr double kRankJitter = 0.022;

// Where names in a file are looked up; throws UsageError with the nearest names. `where` says which
// file and line asked.
struct MachineLibrary {
  std::function<GpuSpec(const std::string& name, const std::string& where)> gpu;
  std::function<LinkSpec(const std::string& name, const std::string& where)> link;
  std::function<CollectiveCurve(const std::string& name, const std::string& where)> collective;
};

LinkSpec parse_link(TomlSection& section);
GpuSpec parse_gpu(TomlSection& section, const MachineLibrary& library);
DefaultWiring parse_default_wiring(TomlSection& section);
NvlinkKind parse_nvlink_kind(TomlSection& section, const char* key);
CollectiveCurve parse_collective(TomlSection& section);
// A node file, which is also the form of a user's machine file.
Machine parse_node(TomlSection& section, const MachineLibrary& library);

// Contradictions that single keys do not show: a link to a GPU that is not there, more links than a
// GPU has, a GPU behind two switches. Throw UsageError naming file and line.
void check_nvlink_pairs(const NodeSpec& node, const GpuSpec& gpu, const TomlSection& section);
void check_pcie_switches(NodeSpec& node, const TomlSection& section);
void check_nic_switches(const NodeSpec& node, const TomlSection& section);

}  // namespace bench::simulator
