#include "training/devices/vgpu_process_group.hpp"

#include "training/devices/boxed_call.hpp"
#include "training/devices/recorder.hpp"
#include "training/devices/vgpu.hpp"

#include <ATen/ATen.h>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include <atomic>
#include <cmath>
#include <utility>

namespace bench::training {
namespace {

using c10::intrusive_ptr;
using c10d::Work;
using simulator::CollectiveKind;
using Tensors = std::vector<at::Tensor>;

std::atomic<std::uint64_t> total_bytes{0};

CollectiveObserver& observer() {
  static CollectiveObserver instance;
  return instance;
}

void tell(const char* name, std::uint64_t bytes) {
  if (observer()) observer()({name, bytes});
}

std::uint64_t bytes_of(const Tensors& tensors) {
  std::uint64_t bytes = 0;
  for (const at::Tensor& tensor : tensors) bytes += tensor.nbytes();
  return bytes;
}

// The same memory as Gloo sees it.
at::Tensor on_host(const at::Tensor& tensor) {
  const Block* block = block_of(tensor);
  if (!block) return tensor;
  TORCH_CHECK(
      block->has_values,
      "vgpu: Gloo cannot send a tensor of shape execution, which has no values; one process "
      "stands for all ranks there (VgpuTransport::symmetric)");
  return host_alias(tensor);
}

Tensors on_host(const Tensors& tensors) {
  Tensors result;
  for (const at::Tensor& tensor : tensors) result.push_back(on_host(tensor));
  return result;
}

// The sum and the like over `world` ranks that all hold this tensor.
void reduce_symmetrically(const at::Tensor& tensor, const c10d::ReduceOp& op, int world) {
  const Block* block = block_of(tensor);
  if (block && !block->has_values) return;
  const at::Tensor values = on_host(tensor);
  switch (op.op_) {
    case c10d::ReduceOp::SUM:
      values.mul_(world);
      break;
    case c10d::ReduceOp::PRODUCT:
      values.pow_(world);
      break;
    case c10d::ReduceOp::BXOR:
      if (world % 2 == 0) values.zero_();
      break;
    default:
      break;  // average, minimum, maximum, and, or of equal values
  }
}

intrusive_ptr<Work> finished(const c10::IValue& value, const c10::TypePtr& type,
                             const at::Tensor& like) {
  std::vector<c10::Device> devices;
  if (is_vgpu(like)) devices.push_back(like.device());
  auto future = c10::make_intrusive<c10::ivalue::Future>(type, devices);
  future->markCompleted(value);
  return Work::create_from_future(future);
}

intrusive_ptr<Work> finished(const Tensors& tensors) {
  return finished(c10::IValue(tensors), c10::ListType::ofTensors(), tensors.at(0));
}

struct Traffic {
  CollectiveKind kind;
  simulator::Phase phase;
  const char* name;
  std::uint64_t payload_bytes;
  std::int32_t root = simulator::kNone;
};

// NCCL's name of the collective: what the same program would launch on real GPUs.
void record_across_ranks(const Traffic& traffic, const Tensors& reads, const Tensors& writes) {
  total_bytes += traffic.payload_bytes;
  tell(traffic.name + std::string_view("nccl::").size(), traffic.payload_bytes);
  const at::Tensor& first = reads.at(0);
  if (!recording() || !is_vgpu(first)) return;
  CollectiveSpec spec;
  spec.kind = traffic.kind;
  spec.name = traffic.name;
  spec.payload_bytes = traffic.payload_bytes;
  spec.root = traffic.root;
  spec.across_ranks = true;
  spec.dtype = record_dtype(first.scalar_type());
  const PhaseScope phase(traffic.phase);
  record_collective(spec, {{first.device().index(), reads, writes}});
}

// Collectives finish before they return: overlap is the simulator's business, and callbacks of a
// Work's future then run on the thread that issued it, which keeps recordings deterministic.
class VgpuBackend final : public c10d::Backend {
 public:
  VgpuBackend(int rank, int size, intrusive_ptr<c10d::ProcessGroupGloo> gloo)
      : Backend(rank, size), gloo_(std::move(gloo)) {}

  const std::string getBackendName() const override { return "vgpu"; }
  void setSequenceNumberForGroup() override {}
  uint64_t getSequenceNumberForGroup() override { return sequence_; }

  intrusive_ptr<Work> broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override {
    ++sequence_;
    record_across_ranks({CollectiveKind::broadcast, simulator::Phase::broadcast, "nccl::broadcast",
                         bytes_of(tensors), static_cast<std::int32_t>(options.rootRank)},
                        tensors, tensors);
    if (gloo_) {
      Tensors host = on_host(tensors);
      gloo_->broadcast(host, options)->wait();
    }
    return finished(tensors);
  }

  intrusive_ptr<Work> allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override {
    ++sequence_;
    record_across_ranks({CollectiveKind::all_reduce, simulator::Phase::reduce, "nccl::all_reduce",
                         bytes_of(tensors)},
                        tensors, tensors);
    reduce_values(tensors, options);
    return finished(tensors);
  }

  intrusive_ptr<Work> allreduce_coalesced(Tensors& tensors,
                                          const c10d::AllreduceCoalescedOptions& options) override {
    ++sequence_;
    record_across_ranks({CollectiveKind::all_reduce, simulator::Phase::reduce, "nccl::all_reduce",
                         bytes_of(tensors)},
                        tensors, tensors);
    for (at::Tensor& tensor : tensors) {
      Tensors one{tensor};
      reduce_values(one, options);
    }
    return finished(tensors);
  }

  intrusive_ptr<Work> reduce(Tensors& tensors, const c10d::ReduceOptions& options) override {
    ++sequence_;
    record_across_ranks({CollectiveKind::reduce, simulator::Phase::reduce, "nccl::reduce",
                         bytes_of(tensors), static_cast<std::int32_t>(options.rootRank)},
                        tensors, tensors);
    if (gloo_) {
      Tensors host = on_host(tensors);
      gloo_->reduce(host, options)->wait();
    } else if (options.rootRank == getRank()) {
      for (const at::Tensor& tensor : tensors) {
        reduce_symmetrically(tensor, options.reduceOp, getSize());
      }
    }
    return finished(tensors);
  }

  intrusive_ptr<Work> allgather(std::vector<Tensors>& outputs, Tensors& inputs,
                                const c10d::AllgatherOptions& options) override {
    ++sequence_;
    record_across_ranks(
        {CollectiveKind::all_gather, simulator::Phase::other, "nccl::all_gather", bytes_of(inputs)},
        inputs, outputs.at(0));
    if (gloo_) {
      std::vector<Tensors> host_outputs;
      for (const Tensors& list : outputs) host_outputs.push_back(on_host(list));
      Tensors host_inputs = on_host(inputs);
      gloo_->allgather(host_outputs, host_inputs, options)->wait();
    } else {
      for (std::size_t i = 0; i < outputs.size(); ++i) copy_to_all(inputs.at(i), outputs[i]);
    }

    return finished(c10::IValue(outputs), c10::ListType::create(c10::ListType::ofTensors()),
                    inputs.at(0));
  }

  intrusive_ptr<Work> _allgather_base(at::Tensor& output, at::Tensor& input,
                                      const c10d::AllgatherOptions& options) override {
    Tensors inputs{input};
    std::vector<Tensors> outputs{output.view({getSize(), -1}).unbind(0)};
    for (at::Tensor& part : outputs[0]) part = part.view_as(input);
    allgather(outputs, inputs, options);
    return finished(Tensors{output});
  }

  intrusive_ptr<Work> barrier(const c10d::BarrierOptions& options) override {
    ++sequence_;
    tell("barrier", 0);
    if (gloo_) gloo_->barrier(options)->wait();
    return finished(c10::IValue(), c10::NoneType::get(), {});
  }

 private:
  void reduce_values(Tensors& tensors, const c10d::AllreduceOptions& options) {
    if (!gloo_) {
      for (const at::Tensor& tensor : tensors) {
        reduce_symmetrically(tensor, options.reduceOp, getSize());
      }
      return;
    }
    Tensors host = on_host(tensors);
    gloo_->allreduce(host, options)->wait();
  }

  static void copy_to_all(const at::Tensor& input, const Tensors& outputs) {
    const Block* block = block_of(input);
    for (const at::Tensor& output : outputs) {
      const Block* target = block_of(output);
      if ((block && !block->has_values) || (target && !target->has_values)) continue;
      on_host(output).copy_(on_host(input));
    }
  }

  intrusive_ptr<c10d::ProcessGroupGloo> gloo_;  // null: symmetric ranks
  std::uint64_t sequence_ = 0;
};

intrusive_ptr<c10d::ProcessGroupGloo> make_gloo(const intrusive_ptr<c10d::Store>& store, int rank,
                                                int world_size, const VgpuGroupOptions& options) {
  TORCH_CHECK(store, "vgpu: a process group over Gloo needs a store");
  auto gloo = c10d::ProcessGroupGloo::Options::create(options.timeout);
  gloo->devices.push_back(c10d::ProcessGroupGloo::createDeviceForInterface(options.interface));
  gloo->threads = 2;
  return c10::make_intrusive<c10d::ProcessGroupGloo>(store, rank, world_size, gloo);
}

}  // namespace

intrusive_ptr<c10d::ProcessGroup> make_process_group(const intrusive_ptr<c10d::Store>& store,
                                                     int rank, int world_size,
                                                     const VgpuGroupOptions& options) {
  using c10d::ProcessGroup;
  auto group = store ? c10::make_intrusive<ProcessGroup>(store, rank, world_size)
                     : c10::make_intrusive<ProcessGroup>(rank, world_size);
  intrusive_ptr<c10d::ProcessGroupGloo> gloo;
  if (options.transport == VgpuTransport::gloo) gloo = make_gloo(store, rank, world_size, options);
  intrusive_ptr<c10d::Backend> backend = c10::make_intrusive<VgpuBackend>(rank, world_size, gloo);
  if (gloo) {
    group->setBackend(c10::kCPU, ProcessGroup::BackendType::GLOO, gloo);
  } else {
    group->setBackend(c10::kCPU, ProcessGroup::BackendType::CUSTOM, backend);
  }
  group->setBackend(c10::kPrivateUse1, ProcessGroup::BackendType::CUSTOM, backend);
  group->setDefaultBackend(ProcessGroup::BackendType::CUSTOM);
  group->setGroupName("bench_vgpu");
  group->setGroupDesc("virtual GPUs");
  return group;
}

std::uint64_t bytes_communicated() { return total_bytes; }

void observe_collectives(CollectiveObserver each) { observer() = std::move(each); }

}  // namespace bench::training
