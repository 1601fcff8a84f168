#include "bench/calibrate/machine_text.hpp"

#include "simulator/machine_files.hpp"

#include <cmath>
#include <cstdarg>
#include <cstdio>

namespace bench {
namespace {

using simulator::EfficiencyCurve;
using simulator::GpuSpec;
using simulator::Machine;
using simulator::NodeSpec;

constexpr double kNsPerUs = 1000;
// A CPU has no compute capability; machine files want one, and the least has no TF32.
constexpr double kNoCapability = 1;
constexpr std::size_t kCommentWidth = 100;

__attribute__((format(printf, 1, 2))) std::string format(const char* pattern, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, pattern);
  std::vsnprintf(text, sizeof text, pattern, arguments);
  va_end(arguments);
  return text;
}

// A TOML basic string.
std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return out + "\"";
}

// Comments end with their line, whatever a name holds.
std::string printable(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  }
  return text;
}

// "# " before every line, words wrapped.
std::string comment(const std::string& text) {
  std::string out = "#";
  std::size_t width = 1;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    if (width + 1 + word.size() > kCommentWidth) {
      out += "\n#";
      width = 1;
    }
    out += " " + printable(word);
    width += 1 + word.size();
    begin = end + 1;
  }
  return out + "\n";
}

std::string curve_text(const char* key, const EfficiencyCurve& curve) {
  std::string out = std::string(key) + " = [\n";
  for (const auto& [x, y] : curve.points) out += format("  [%.5g, %.5g],\n", x, std::min(y, 1.0));
  return out + "]\n";
}

std::string heading(const CalibratedMachine& calibrated, const CalibrationSamples& samples,
                    const CalibrationContext& context) {
  const std::string driver = samples.driver.empty() ? "" : ", driver " + samples.driver;
  const std::string cuda = samples.cuda.empty() ? "" : ", CUDA " + samples.cuda;
  // The command stays on one line, to be copied.
  std::string out = "# " + printable(context.command) + "\n";
  out += comment("Measured or fitted " + context.date + ".");
  out += comment(samples.device_name + driver + cuda + ", torch " + samples.torch + ".");
  out += comment(
      "How well these figures give the measured times of operators back: mean and worst error.");
  for (const FitLine& line : calibrated.lines) {
    out += comment(format("  %s: %.1f %%, %.1f %% (%d, worst ", line.family.c_str(),
                          100 * line.mean_error, 100 * line.worst_error, line.samples) +
                   line.worst + ")");
  }
  for (const std::string& note : samples.notes) out += comment("Not measured: " + note + ".");
  return out;
}

std::string pcie_name(double gb_per_s) {
  constexpr struct {
    const char* name;
    double gb_per_s;
  } kSlots[] = {
      {"pcie-gen3-x16", 12}, {"pcie-gen4-x16", 24}, {"pcie-gen5-x16", 48}, {"pcie-gen6-x16", 96}};
  const char* nearest = kSlots[0].name;
  double least = std::abs(std::log(gb_per_s / kSlots[0].gb_per_s));
  for (const auto& slot : kSlots) {
    const double distance = std::abs(std::log(gb_per_s / slot.gb_per_s));
    if (distance >= least) continue;
    least = distance;
    nearest = slot.name;
  }
  return nearest;
}

std::string rates_text(const GpuSpec& gpu) {
  std::string out = format("fp32_tflops = %.5g\n", gpu.fp32_tflops.value);
  const auto optional = [&](const char* key, double tflops) {
    if (tflops > 0) out += format("%s = %.5g\n", key, tflops);
  };
  optional("tf32_tflops", gpu.tf32_tflops);
  optional("fp16_tflops", gpu.fp16_tflops);
  optional("bf16_tflops", gpu.bf16_tflops);
  return out;
}

std::string kernels_text(const GpuSpec& gpu) {
  std::string out = "\n[gpu.kernels]\nsource = \"the same\"\nprovenance = \"measured\"\n";
  out += "scaled = [\"overlap_slowdown\"]  # as in the catalogue\n";
  out += format("launch_us = %.4g  # least time a kernel occupies its stream\n",
                gpu.launch_ns / kNsPerUs);
  out += format("overlap_slowdown = %.3g\n", gpu.overlap_slowdown.value);
  out += format("grouped_halfway = %.4g  # channels per group that reach half of the curve\n",
                gpu.grouped_halfway);
  out += format("depthwise_share = %.4g  # what one channel per group reaches of it\n",
                gpu.depthwise_share);
  out += "# [microseconds at the peak rate, share of the peak reached]\n";
  out += curve_text("matrix_efficiency", gpu.matrix_efficiency);
  out += curve_text("convolution_efficiency", gpu.convolution_efficiency);
  out += curve_text("memory_efficiency", gpu.memory_efficiency);
  if (!gpu.matrix_efficiency_16bit.points.empty()) {
    out += curve_text("matrix_efficiency_16bit", gpu.matrix_efficiency_16bit);
  }
  if (!gpu.convolution_efficiency_16bit.points.empty()) {
    out += curve_text("convolution_efficiency_16bit", gpu.convolution_efficiency_16bit);
  }
  if (gpu.operator_factors.empty()) return out;
  out += "\n[gpu.kernels.operator_factors]  # time relative to what the curves say\n";
  for (const auto& [name, factor] : gpu.operator_factors) {
    out += quoted(name) + format(" = %.4g\n", factor);
  }
  return out;
}

std::string gpu_text(const Machine& machine, const CalibrationSamples& samples) {
  const GpuSpec& gpu = machine.gpu;
  std::string out = "\n[gpu]\n";
  out += "title = " + quoted(gpu.title) + "\n";
  out += "source = \"bench calibrate on this machine\"\nprovenance = \"measured\"\n";
  out += format("compute_capability = %.1f\n",
                gpu.compute_capability > 0 ? gpu.compute_capability : kNoCapability);
  out += format("memory_gib = %.6g\n", gpu.memory_gib.value);
  out += format("memory_gb_per_s = %.5g  # the best rate of any size, caches included\n",
                gpu.memory_bandwidth.value);
  out += rates_text(gpu);
  out += "pcie = " + quoted(pcie_name(gpu.pcie_bandwidth)) + "  # the nearest of the catalogue\n";
  out += format("pcie_gb_per_s = %.4g", gpu.pcie_bandwidth.value);
  out += format("  # to the device %.4g, from it %.4g, from pageable memory %.4g\n",
                samples.copies.host_to_device, samples.copies.device_to_host,
                samples.copies.pageable_to_device);
  if (gpu.nvlink_links > 0) {
    out += "\n[gpu.nvlink]  # as copies between the GPUs show it; single links do not show\n";
    out += format("links = %d\ngb_per_s_per_link = %.4g\n", gpu.nvlink_links,
                  gpu.nvlink_bandwidth.value);
  }
  out += kernels_text(gpu);
  if (gpu.context_gib > 0) {
    out += format("\n[gpu.memory]\ncontext_gib = %.4g  # context and loaded kernels\n",
                  gpu.context_gib.value);
  }
  return out;
}

std::string nvlink_text(const NodeSpec& node) {
  if (node.nvlink == simulator::NvlinkKind::none) return "";
  const bool mesh = node.nvlink == simulator::NvlinkKind::mesh;
  std::string out = "\n[nvlink]\n";
  out += std::string("kind = ") + (mesh ? "\"mesh\"" : "\"nvswitch\"") + "\n";
  if (!mesh) return out;
  out += "pairs = [";
  for (const auto& pair : node.nvlink_pairs) {
    if (out.back() != '[') out += ", ";
    out += format("[%d, %d, %d]", pair.a, pair.b, pair.links);
  }
  return out + "]\n";
}

std::string pcie_text(const NodeSpec& node) {
  std::string out = "\n[pcie]\n";
  const bool staged = node.staged_bandwidth.provenance == simulator::Provenance::measured;
  out += std::string("peer_to_peer = ") + (node.peer_to_peer ? "true" : "false") + "\n";
  if (staged) out += format("staged_gb_per_s = %.4g\n", node.staged_bandwidth.value);
  std::string switches;
  std::string sockets;
  for (std::size_t i = 0; i < node.pcie_switches.size(); ++i) {
    if (i > 0) switches += ", ", sockets += ", ";
    switches += format("[%d]", node.pcie_switches[i].at(0));
    sockets += format("%d", node.switch_socket[i]);
  }
  out += "switches = [" + switches + "]\nswitch_sockets = [" + sockets + "]\n";
  return out;
}

std::string host_text(const NodeSpec& node, const CalibrationSamples& samples) {
  std::string out = "\n[host]\n";
  if (samples.device_kind == "cpu") {
    out += "scaled = [\"slowdown\"]\n";
    out += "# An operator's time on a CPU contains its issuing: nothing is left for a host.\n";
  } else {
    out += format(
        "# An operator takes %.3g us forward and %.3g us backward, a convolution %.3g us "
        "more.\n",
        samples.host.forward_ns / kNsPerUs, samples.host.backward_ns / kNsPerUs,
        samples.host.convolution_ns / kNsPerUs);
  }
  out += format("slowdown = %.4g\n", node.host_slowdown.value);
  if (node.sockets > 1) {
    out += "socket_link = \"socket-skylake-upi\"  # not measured: the commonest of its time\n";
  }
  return out;
}

std::string collectives_text(const Machine& machine) {
  std::string out;
  for (const auto& curve : machine.collectives) {
    out += "\n[[collective]]\n";
    out += "title = " + quoted(curve.name) + "\n";
    out += "source = \"bench calibrate on this machine\"\nprovenance = \"measured\"\n";
    out += format("ranks = %d\n", curve.ranks);
    out += format("compute_capability = %.1f\n",
                  curve.compute_capability > 0 ? curve.compute_capability : kNoCapability);
    out += format("ring_gb_per_s = %.4g\n", curve.ring_gb_per_s);
    out += std::string("nvlink = ") + (curve.nvlink ? "true" : "false") + "\n";
    out += "# [bytes per rank, microseconds]\nall_reduce = [\n";
    for (const auto& [bytes, ns] : curve.points) {
      out += format("  [%.0f, %.5g],\n", bytes, ns / kNsPerUs);
    }
    out += "]\n";
  }
  return out;
}

}  // namespace

std::string machine_text(const CalibratedMachine& calibrated, const CalibrationSamples& samples,
                         const CalibrationContext& context) {
  const Machine& machine = calibrated.machine;
  std::string out = heading(calibrated, samples, context);
  out += "title = " + quoted(machine.node.title) + "\n";
  out += "source = \"bench calibrate on this machine\"\nprovenance = \"measured\"\n";
  out += format("gpus = %d\n", machine.node.gpus);
  out += gpu_text(machine, samples);
  out += nvlink_text(machine.node);
  out += pcie_text(machine.node);
  out += host_text(machine.node, samples);
  out += collectives_text(machine);
  return out;
}

}  // namespace bench
