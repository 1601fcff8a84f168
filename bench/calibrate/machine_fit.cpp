#include "bench/calibrate/machine_fit.hpp"

#include "bench/calibrate/curve_fit.hpp"
#include "bench/calibrate/kernel_fit.hpp"
#include "bench/core/error.hpp"
#include "simulator/host_costs.hpp"
#include "simulator/kernel_time.hpp"
#include "simulator/machine_files.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <tuple>

namespace bench {
namespace {

using simulator::Machine;
using simulator::Provenance;
using simulator::Quantity;

constexpr double kBytesPerGib = 1024.0 * 1024 * 1024;
// The same call twice must not take more than this many times as long.
constexpr double kContradiction = 2;
// Half of the samples further off than this: the curves do not describe this machine.
constexpr double kMostMedianError = 0.5;
// What no calibration on one device can measure: as in the catalogue.
constexpr double kOverlapSlowdown = 0.25;
// An operator's time on a CPU contains its issuing, so that the host thread has nothing left to
// pay. Machine files want a number above zero.
constexpr double kFreeHost = 1e-6;

void refuse(const std::string& why) { throw MachineError("calibration: " + why); }

void check(const CalibrationSamples& samples) {
  if (!(samples.launch_ns > 0)) refuse("the time of an empty kernel is missing");
  std::map<std::tuple<std::string, std::string, simulator::DType, std::uint64_t>, double> seen;
  for (const OperationSample& s : samples.operations) {
    const std::string what = s.name + " " + s.shape;
    if (!(s.ns > 0) || !std::isfinite(s.ns)) refuse(what + " took no time");
    if (s.launches < 0 || s.flops < 0) refuse(what + " has negative costs");
    const auto [at, first] = seen.try_emplace({s.name, s.shape, s.dtype, s.bytes_read}, s.ns);
    const double ratio = s.ns / at->second;
    if (first || (ratio < kContradiction && ratio > 1 / kContradiction)) continue;
    char text[96];
    std::snprintf(text, sizeof text, " took %.1f us once and %.1f us another time",
                  at->second / 1000, s.ns / 1000);
    refuse(what + text + "; is something else running?");
  }
}

// The slot of the catalogue that comes nearest; its bandwidth gives way to what was measured.
void fit_host_link(const CalibrationSamples& samples, Machine& machine) {
  std::vector<double> measured;
  for (const double rate : {samples.copies.host_to_device, samples.copies.device_to_host}) {
    if (rate > 0) measured.push_back(rate);
  }
  if (measured.empty()) refuse("copies between host and device are missing");
  // One figure stands for both directions.
  machine.gpu.pcie_bandwidth = {*std::min_element(measured.begin(), measured.end()),
                                Provenance::measured};
}

double host_slowdown(const CalibrationSamples& samples) {
  if (samples.device_kind == "cpu") return kFreeHost;
  const simulator::HostCosts reference = simulator::host_costs(HostProfile::cpp);
  double sum = 0;
  int figures = 0;
  const auto add = [&](double measured, double expected) {
    if (measured <= 0) return;
    sum += std::log(measured / expected);
    ++figures;
  };
  add(samples.host.forward_ns, reference.dispatch_ns);
  add(samples.host.backward_ns, reference.backward_dispatch_ns);
  if (figures == 0) refuse("host times of operators are missing");
  return std::exp(sum / figures);
}

// What joins the GPUs, read off the rates between them: a pair that copies faster than its slot
// lets it must have NVLink; all pairs equally fast have a switch or bridges that amount to one.
void fit_wiring(const CalibrationSamples& samples, Machine& machine) {
  constexpr double kFasterThanSlot = 1.3;
  simulator::NodeSpec& node = machine.node;
  node.peer_to_peer = !samples.peers.empty() || node.gpus == 1;
  double slowest = 0;
  double sum = 0;
  int linked = 0;
  for (const PeerSample& p : samples.peers) {
    node.peer_to_peer = node.peer_to_peer && p.peer_access;
    if (slowest == 0 || p.gb_per_s < slowest) slowest = p.gb_per_s;
    if (!p.peer_access || p.gb_per_s < kFasterThanSlot * machine.gpu.pcie_bandwidth) continue;
    sum += p.gb_per_s;
    ++linked;
    if (p.from < p.to) node.nvlink_pairs.push_back({p.from, p.to, 1});
  }
  if (linked > 0) {
    machine.gpu.nvlink_bandwidth = {sum / linked, Provenance::measured};
    machine.gpu.nvlink_links = 1;
    node.nvlink = simulator::NvlinkKind::mesh;
    const bool every_pair = linked == node.gpus * (node.gpus - 1);
    if (every_pair && node.gpus > 2) {
      node.nvlink = simulator::NvlinkKind::nvswitch;
      node.nvlink_pairs.clear();
    } else {
      std::vector<int> links(static_cast<std::size_t>(node.gpus), 0);
      for (const auto& pair : node.nvlink_pairs) {
        for (const int end : {pair.a, pair.b}) {
          machine.gpu.nvlink_links =
              std::max(machine.gpu.nvlink_links, ++links[static_cast<std::size_t>(end)]);
        }
      }
    }
  }
  const bool staged = !samples.peers.empty() && !node.peer_to_peer;
  node.staged_bandwidth =
      staged ? Quantity{slowest, Provenance::measured}
             : Quantity{simulator::kStagedShare * machine.gpu.pcie_bandwidth, Provenance::scaled};
}

void fit_node(const CalibrationSamples& samples, Machine& machine) {
  simulator::NodeSpec& node = machine.node;
  node.gpus = std::max<std::int32_t>(1, static_cast<std::int32_t>(samples.sockets.size()));
  node.title = std::to_string(node.gpus) + " x " + samples.device_name;
  for (std::int32_t gpu = 0; gpu < node.gpus; ++gpu) {
    node.pcie_switches.push_back({gpu});
    node.switch_socket.push_back(
        samples.sockets.empty() ? 0 : samples.sockets[static_cast<std::size_t>(gpu)]);
  }
  node.sockets = 1 + *std::max_element(node.switch_socket.begin(), node.switch_socket.end());
  node.host_slowdown = {host_slowdown(samples),
                        samples.device_kind == "cpu" ? Provenance::scaled : Provenance::measured};
  node.rank_jitter = {simulator::kRankJitter, Provenance::scaled};
  fit_wiring(samples, machine);
}

void fit_collective(const CalibrationSamples& samples, Machine& machine) {
  if (samples.all_reduce.size() < 2) return;
  simulator::CollectiveCurve curve;
  curve.name = machine.node.title;
  curve.ranks = machine.node.gpus;
  curve.compute_capability = machine.gpu.compute_capability;
  curve.nvlink = machine.node.nvlink != simulator::NvlinkKind::none;
  curve.ring_gb_per_s = curve.nvlink ? machine.gpu.nvlink_bandwidth * machine.gpu.nvlink_links
                                     : machine.gpu.pcie_bandwidth.value;
  curve.points = samples.all_reduce;
  machine.collectives.push_back(std::move(curve));
}

std::string family_of(const OperationSample& s) {
  const std::string type = std::string(", ") + simulator::dtype_name(s.dtype);
  if (is_matrix_product(s.name)) return "matrix products" + type;
  if (simulator::is_convolution(s.name)) {
    std::string family = is_grouped(s) ? "grouped convolutions" : "convolutions";
    return family + (is_convolution_backward(s.name) ? " backward" : "") + type;
  }
  return "other operators" + type;
}

void add_to(FitLine& line, const OperationSample& sample, double error) {
  ++line.samples;
  line.mean_error += std::abs(error);
  if (std::abs(error) <= line.worst_error) return;
  line.worst_error = std::abs(error);
  line.worst = sample.name + " " + sample.shape;
}

std::vector<FitLine> fit_lines(const CalibrationSamples& samples,
                               const std::vector<double>& errors) {
  std::map<std::string, FitLine> families;
  FitLine all;
  all.family = "all operators";
  for (std::size_t i = 0; i < errors.size(); ++i) {
    const OperationSample& s = samples.operations[i];
    FitLine& line = families[family_of(s)];
    line.family = family_of(s);
    add_to(line, s, errors[i]);
    add_to(all, s, errors[i]);
  }
  std::vector<FitLine> lines;
  for (auto& [name, line] : families) lines.push_back(std::move(line));
  lines.push_back(std::move(all));
  for (FitLine& line : lines) line.mean_error /= std::max(1, line.samples);
  return lines;
}

}  // namespace

std::vector<double> fit_errors(const CalibrationSamples& samples, const simulator::GpuSpec& gpu) {
  std::vector<double> errors;
  for (const OperationSample& s : samples.operations) {
    errors.push_back(simulator::kernel_ns(s.operation(), s.name, s.shape, gpu) / s.ns - 1);
  }
  return errors;
}

CalibratedMachine fit_machine(const CalibrationSamples& samples) {
  check(samples);
  CalibratedMachine result;
  Machine& machine = result.machine;
  machine.gpu.title = samples.device_name;
  machine.gpu.name = samples.device_name;
  machine.gpu.compute_capability = samples.compute_capability;
  machine.gpu.memory_gib = {static_cast<double>(samples.memory_bytes) / kBytesPerGib,
                            Provenance::measured};
  machine.gpu.context_gib = {static_cast<double>(samples.context_bytes) / kBytesPerGib,
                             Provenance::measured};
  machine.gpu.overlap_slowdown = {kOverlapSlowdown, Provenance::scaled};
  fit_kernels(samples, machine.gpu);
  fit_host_link(samples, machine);
  fit_node(samples, machine);
  fit_collective(samples, machine);
  const std::vector<double> errors = fit_errors(samples, machine.gpu);
  std::vector<double> sizes;
  for (const double error : errors) sizes.push_back(std::abs(error));
  if (median(sizes) > kMostMedianError) {
    refuse(
        "the samples fit no curve: half of them are further than 50 % from it; "
        "is something else running?");
  }
  result.lines = fit_lines(samples, errors);
  return result;
}

}  // namespace bench
