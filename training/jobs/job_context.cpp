#include "training/jobs/job_context.hpp"

#include "bench/core/error.hpp"
#include "bench/core/strategy.hpp"

#include "training/data/batch_source.hpp"
#include "training/devices/vgpu.hpp"
#include "training/devices/vgpu_process_group.hpp"
#include "training/strategies/rendezvous.hpp"

#include <ATen/Parallel.h>
#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include <cstdlib>
#include <thread>

namespace bench::training {
namespace {

bool one_process(const Case& work) { return work.strategy != Strategy::distributed; }

// Devices that one process drives.
int devices_of_process(const Case& work) {
  const bool replicas =
      work.strategy == Strategy::data_parallel || work.strategy == Strategy::libtorch_data_parallel;
  return replicas ? work.world_size() : 1;
}

// CUDA indices that this process drives. On several nodes a rank knows its GPU by its place on the
// node; elsewhere the case lists the GPUs of all ranks.
std::vector<int> cuda_indices(const Case& work, const RankContext& ranks) {
  if (one_process(work) && devices_of_process(work) == 1) return {work.gpus.at(0)};
  if (one_process(work)) return work.gpus;
  if (ranks.local_world_size != ranks.world_size) return {ranks.local_rank};
  return {work.gpus.at(static_cast<std::size_t>(ranks.rank))};
}

std::optional<Skip> missing_gpu(const std::vector<int>& indices) {
  const int found = static_cast<int>(torch::cuda::device_count());
  for (const int gpu : indices) {
    if (gpu < found) continue;
    return Skip{"needs GPU " + std::to_string(gpu) + ", found " + std::to_string(found) +
                (found == 1 ? " GPU" : " GPUs")};
  }
  return std::nullopt;
}

std::optional<Skip> empty_rank(const Case& work) {
  for (const auto samples : micro_batches(work)) {
    if (work.strategy == Strategy::distributed && samples < work.world_size()) {
      return Skip{"a batch of " + std::to_string(samples) + " leaves ranks without samples on " +
                  std::to_string(work.world_size()) + " GPUs"};
    }
    if (samples == 0)
      return Skip{"a batch of " + std::to_string(work.batch) + " in " +
                  std::to_string(work.accumulation) + " micro-batches leaves some empty"};
  }
  return std::nullopt;
}

// The cores of this machine divided among `users` threads that compute at the same time.
int fair_threads(int users) {
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()) / std::max(1, users));
}

// Intra-op threads; OMP_NUM_THREADS wins where the user set it.
void set_threads(int count) {
  if (std::getenv("OMP_NUM_THREADS") == nullptr) at::set_num_threads(count);
}

}  // namespace

JobContext::JobContext(RankContext ranks, WorkerChannel& channel, const std::vector<Job>& jobs)
    : ranks_(std::move(ranks)), channel_(channel) {
  for (const auto& job : jobs) {
    // A rank of a pitfall sees all GPUs: some mistakes are about taking the wrong one.
    const bool all = job.kind == JobKind::pitfall;
    vgpu_count_ = std::max(vgpu_count_, all ? job.work.world_size() : devices_of_process(job.work));
  }
}

void JobContext::begin_job(int index) {
  index_ = index;
  channel_.begin_job(index);
}

c10::intrusive_ptr<c10d::ProcessGroup> JobContext::connect(const Case& work, Execute execute,
                                                           at::Device device) {
  if (device.is_privateuseone() && execute == Execute::shape && ranks_.world_size == 1) {
    VgpuGroupOptions options;
    options.transport = VgpuTransport::symmetric;
    return make_process_group(nullptr, /*rank=*/0, work.world_size(), options);
  }
  if (ranks_.world_size != work.world_size()) {
    throw UsageError("WORLD_SIZE is " + std::to_string(ranks_.world_size) + ", the case has " +
                     std::to_string(work.world_size()) + " GPUs");
  }
  if (!store_ && ranks_.world_size == 1) store_ = c10::make_intrusive<c10d::HashStore>();
  if (!store_) store_ = connect_store(ranks_);
  return connect_group(store_, ranks_, device, "job" + std::to_string(index_), communication_);
}

Outcome<Placement> JobContext::place(const Case& work, Execute execute) {
  if (auto skip = empty_rank(work)) return *skip;
  Placement placement;
  if (work.device == DeviceKind::cpu) {
    if (devices_of_process(work) > 1) {
      return Skip{std::string(strategy_name(work.strategy)) +
                  " needs several devices, a CPU is one: use --device vgpu"};
    }
    placement.devices = {at::kCPU};
  } else if (work.device == DeviceKind::vgpu) {
    register_vgpu({vgpu_count_, execute, work.device_memory_bytes});
    for (int i = 0; i < devices_of_process(work); ++i) placement.devices.push_back(vgpu_device(i));
  } else {
    const auto indices = cuda_indices(work, ranks_);
    if (auto skip = missing_gpu(indices)) return *skip;
    for (const int gpu : indices) {
      placement.devices.emplace_back(at::kCUDA, static_cast<at::DeviceIndex>(gpu));
    }
  }
  // Shape execution has no arithmetic to share out; starting threads would only cost time.
  const bool shapes_only = work.device == DeviceKind::vgpu && execute == Execute::shape;
  set_threads(shapes_only ? 1 : fair_threads(ranks_.local_world_size * devices_of_process(work)));
  communication_ = nullptr;
  if (work.device != DeviceKind::vgpu && devices_of_process(work) == 1) {
    communication_ = make_communication_timer(placement.devices[0], work.world_size());
  }
  if (one_process(work)) return placement;
  placement.rank = ranks_.rank;
  placement.world_size = work.world_size();
  placement.group = connect(work, execute, placement.devices[0]);
  return placement;
}

}  // namespace bench::training
