#include "simulator/machine_files.hpp"

namespace bench::simulator {
namespace {

constexpr double kMaxCapability = 20;
constexpr double kMaxTflops = 1e6;
constexpr double kNsPerUs = 1000;
// At 1 and above, kernels would stand still beside a collective.
constexpr double kMaxSlowdown = 1;
// An operator that takes longer than this is not described by the curves at all.
constexpr double kMaxOperatorFactor = 1000;

// An efficiency curve must not let a larger operation finish before a smaller one: x / y, the time
// that the point stands for, ascends.
EfficiencyCurve efficiency(TomlSection& section, const char* key) {
  EfficiencyCurve curve{section.curve(key, 1)};
  for (std::size_t i = 1; i < curve.points.size(); ++i) {
    const auto& [x, y] = curve.points[i];
    const auto& [before_x, before_y] = curve.points[i - 1];
    if (x / y < before_x / before_y) {
      section.fail(key, std::string(key) + ": a larger operation would take less time than a " +
                            "smaller one at point " + std::to_string(i + 1));
    }
  }
  return curve;
}

EfficiencyCurve efficiency_or_empty(TomlSection& section, const char* key) {
  return section.has(key) ? efficiency(section, key) : EfficiencyCurve{};
}

// Names of operators as recordings have them, and times relative to what the curves say.
void parse_operator_factors(TomlSection& kernels, GpuSpec& gpu) {
  const toml::table* table = kernels.table("operator_factors");
  if (table == nullptr) return;
  TomlSection section(*table, kernels.file(), "operator_factors");
  for (const auto& [key, node] : *table) {
    const std::string name(key.str());
    gpu.operator_factors[name] = section.number(name, 0, kMaxOperatorFactor);
  }
}

void parse_kernels(TomlSection& section, GpuSpec& gpu) {
  const toml::table* table = section.table("kernels");
  if (table == nullptr) section.fail("kernels", "missing table [kernels]");
  TomlSection kernels(*table, section.file(), "kernels");
  kernels.read_provenance(&section);
  kernels.text_or("source", "");
  gpu.launch_ns = kernels.quantity("launch_us", 0, kMaxLatencyUs);
  gpu.launch_ns.value *= kNsPerUs;
  gpu.overlap_slowdown = kernels.quantity("overlap_slowdown", -1e-9, kMaxSlowdown);
  gpu.matrix_efficiency = efficiency(kernels, "matrix_efficiency");
  gpu.convolution_efficiency = efficiency(kernels, "convolution_efficiency");
  gpu.memory_efficiency = efficiency(kernels, "memory_efficiency");
  gpu.matrix_efficiency_16bit = efficiency_or_empty(kernels, "matrix_efficiency_16bit");
  gpu.convolution_efficiency_16bit = efficiency_or_empty(kernels, "convolution_efficiency_16bit");
  gpu.grouped_halfway = kernels.number_or("grouped_halfway", gpu.grouped_halfway);
  gpu.depthwise_share = kernels.number_or("depthwise_share", gpu.depthwise_share, 0, 1);
  parse_operator_factors(kernels, gpu);
  kernels.finish();
}

void parse_nvlink(TomlSection& section, GpuSpec& gpu) {
  const toml::table* table = section.table("nvlink");
  if (table == nullptr) return;
  TomlSection nvlink(*table, section.file(), "nvlink");
  nvlink.read_provenance(&section);
  nvlink.text_or("source", "");
  gpu.nvlink_links = nvlink.integer("links", 1, 1024);
  gpu.nvlink_bandwidth = nvlink.quantity("gb_per_s_per_link", kLeastRate, kMaxGbPerSecond);
  gpu.reduces_in_switch = nvlink.boolean_or("reduces_in_switch", false);
  nvlink.finish();
}

}  // namespace

LinkSpec parse_link(TomlSection& section) {
  section.read_provenance();
  section.text("title");
  section.text("source");
  LinkSpec link;
  link.bandwidth = section.quantity("gb_per_s", kLeastRate, kMaxGbPerSecond);
  link.latency_ns = section.quantity("latency_us", 0, kMaxLatencyUs);
  link.latency_ns.value *= kNsPerUs;
  section.finish();
  return link;
}

GpuSpec parse_gpu(TomlSection& section, const MachineLibrary& library) {
  section.read_provenance();
  GpuSpec gpu;
  gpu.title = section.text("title");
  gpu.source = section.text_or("source", "");
  section.texts_or_empty("aliases");
  gpu.compute_capability = section.number("compute_capability", 0, kMaxCapability);
  gpu.memory_gib = section.quantity("memory_gib", 0, 1e5);
  gpu.memory_bandwidth = section.quantity("memory_gb_per_s", kLeastRate, kMaxGbPerSecond);
  gpu.fp32_tflops = section.quantity("fp32_tflops", kLeastRate, kMaxTflops);
  const Provenance absent = Provenance::specification;
  gpu.tf32_tflops = section.quantity_or("tf32_tflops", 0, absent, kLeastRate, kMaxTflops);
  gpu.fp16_tflops = section.quantity_or("fp16_tflops", 0, absent, kLeastRate, kMaxTflops);
  gpu.bf16_tflops = section.quantity_or("bf16_tflops", 0, absent, kLeastRate, kMaxTflops);
  const std::string pcie = section.text("pcie");
  const Quantity slot = library.link(pcie, section.where("pcie")).bandwidth;
  gpu.pcie_bandwidth =
      section.quantity_or("pcie_gb_per_s", slot, slot.provenance, kLeastRate, kMaxGbPerSecond);
  parse_nvlink(section, gpu);
  parse_kernels(section, gpu);
  if (const toml::table* table = section.table("memory")) {
    TomlSection memory(*table, section.file(), "memory");
    memory.read_provenance(&section);
    memory.text_or("source", "");
    gpu.context_gib = memory.quantity("context_gib", 0, 1e3);
    memory.finish();
  }
  section.table("default_wiring");
  section.finish();
  return gpu;
}

DefaultWiring parse_default_wiring(TomlSection& section) {
  const toml::table* table = section.table("default_wiring");
  DefaultWiring wiring;
  if (table == nullptr) return wiring;
  TomlSection own(*table, section.file(), "default_wiring");
  wiring.node = own.text_or("node", "");
  wiring.where = own.where("node");
  wiring.peer_to_peer = own.boolean_or("peer_to_peer", true);
  own.finish();
  return wiring;
}

}  // namespace bench::simulator
