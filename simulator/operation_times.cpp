#include "simulator/operation_times.hpp"

#include "bench/core/error.hpp"
#include "simulator/kernel_time.hpp"
#include "simulator/rank_jitter.hpp"

#include <algorithm>
#include <cmath>
#include <map>

namespace bench::simulator {
namespace {

// Half of what 64 bits hold, so that sums of what is below it stay representable.
constexpr double kMaxTotalNs = 4e18;
// Setting up a copy engine: a small cudaMemcpyAsync takes a few microseconds on the device.
constexpr double kCopySetupNs = 2e3;

class TimeTable {
 public:
  TimeTable(const OperationGraph& graph, const ServiceOrder& order, const Machine& machine,
            const Topology& topology, const std::vector<int>& gpus, const std::vector<JobPart>& job,
            const SimulationOptions& options)
      : graph_(graph),
        order_(order),
        machine_(machine),
        topology_(topology),
        gpus_(gpus),
        job_(job),
        options_(options),
        costs_(host_costs(options.host)) {
    costs_.module_replica_ns *= options.replica_scale;
  }

  OperationTimes make() {
    const std::size_t size = graph_.operations.size();
    times_.device_ns.assign(size, 0);
    times_.issue_ns.assign(size, 0);
    times_.locked_ns.assign(size, 0);
    times_.slowdown_ns.assign(size, 0);
    const double host_scale = options_.host_scale * machine_.node.host_slowdown;
    const double interpreter_scale =
        std::min(options_.host_scale, 1.0) * machine_.node.host_slowdown;
    const bool job = graph_.strategy == "distributed";
    kernel_scale_ = options_.kernel_scale;
    if (job) kernel_scale_ *= slowest_rank_factor(topology_.size(), machine_, options_);
    times_.launch_latency_ns = rounded(costs_.launch_latency_ns * host_scale);
    std::vector<bool> autograd;
    for (const std::string& thread : graph_.host_threads) {
      autograd.push_back(is_autograd_thread(thread));
    }
    for (std::uint32_t i = 0; i < size; ++i) {
      const Operation& op = graph_.operations[i];
      const IssueTime issue =
          issue_time(op, graph_.names[op.name], autograd[op.host_thread], costs_);
      times_.locked_ns[i] = rounded(issue.locked_ns * interpreter_scale);
      times_.issue_ns[i] = times_.locked_ns[i] + rounded(issue.free_ns * host_scale);
      if (order_.unit[i] == i) time_unit(i);
    }
    return std::move(times_);
  }

 private:
  std::int64_t rounded(double ns) {
    total_ += ns;
    if (!(total_ < kMaxTotalNs)) {
      throw UsageError("operation graph of " + graph_.model +
                       ": its operations take longer than 64 bits of nanoseconds hold");
    }
    return std::llround(ns);
  }

  void time_unit(std::uint32_t i) {
    const Operation& op = graph_.operations[i];
    switch (op.kind) {
      case OpKind::kernel:
        times_.device_ns[i] =
            rounded(kernel_scale_ *
                    kernel_ns(op, graph_.names[op.name], graph_.names[op.shape], machine_.gpu));
        return;
      case OpKind::copy:
        times_.device_ns[i] = rounded(copy_fixed_ns(op));
        count_links(op);
        return;
      case OpKind::collective:
        time_collective(i);
        return;
      case OpKind::host:
      case OpKind::sync:
        return;
    }
  }

  double copy_fixed_ns(const Operation& op) const {
    if (op.device != op.peer) return kCopySetupNs;
    Operation inside = op;  // within one GPU: read and written once
    inside.bytes_read = inside.bytes_written = op.bytes_moved;
    return kernel_scale_ * kernel_ns(inside, "", "", machine_.gpu);
  }

  // The links of a copy take time too; it only has to be known that the total stays in range.
  void count_links(const Operation& op) {
    double slowest = machine_.gpu.pcie_bandwidth;
    slowest = std::min(slowest, std::max(machine_.node.staged_bandwidth.value, 1e-6));
    rounded(static_cast<double>(op.bytes_moved) / slowest * topology_.size());
  }

  const JobCollectives& model_of(std::uint32_t unit) {
    if (graph_.operations[unit].across_ranks) {
      if (!job_model_) job_model_.emplace(job_);
      return *job_model_;
    }
    std::vector<int> members;
    for (std::uint32_t m = unit; m != kNoMember; m = order_.next_member[m]) {
      members.push_back(gpus_[static_cast<std::size_t>(graph_.operations[m].device)]);
    }
    std::sort(members.begin(), members.end());
    members.erase(std::unique(members.begin(), members.end()), members.end());
    const auto found = models_.find(members);
    if (found != models_.end()) return found->second;
    return models_.emplace(members, JobCollectives(job_parts(machine_, members))).first->second;
  }

  void time_collective(std::uint32_t i) {
    const Operation& op = graph_.operations[i];
    const JobCollectives& model = model_of(i);
    if (model.ranks() < 2) return;  // alone: NCCL does nothing
    const CollectiveEstimate estimate =
        model.estimate(op.collective, static_cast<double>(op.bytes_moved));
    times_.device_ns[i] = rounded(estimate.ns);
    times_.slowdown_ns[i] = rounded(estimate.ns * machine_.gpu.overlap_slowdown);
    times_.collective_error = std::max(times_.collective_error, estimate.relative_error);
    if (estimate.provenance >= times_.collective_provenance) {
      times_.collective_provenance = estimate.provenance;
      times_.collective_basis = estimate.basis;
    }
  }

  const OperationGraph& graph_;
  const ServiceOrder& order_;
  const Machine& machine_;
  const Topology& topology_;
  const std::vector<int>& gpus_;
  const std::vector<JobPart>& job_;
  const SimulationOptions& options_;
  HostCosts costs_;
  OperationTimes times_;
  double kernel_scale_ = 1;
  double total_ = 0;
  std::optional<JobCollectives> job_model_;
  std::map<std::vector<int>, JobCollectives> models_;
};

}  // namespace

OperationTimes operation_times(const OperationGraph& graph, const ServiceOrder& order,
                               const Machine& machine, const Topology& topology,
                               const std::vector<int>& gpus, const std::vector<JobPart>& job,
                               const SimulationOptions& options) {
  return TimeTable(graph, order, machine, topology, gpus, job, options).make();
}

}  // namespace bench::simulator
