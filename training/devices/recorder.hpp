// Records what virtual GPUs execute as a simulator::OperationGraph. One recorder per process;
// everything below is free of cost and effect while nothing is recorded, except memory categories,
// which are always kept so that parameters allocated before the recorded step are labelled.
//
// Every host thread logs on its own; what crosses threads is explicit: a thread starts at a
// ForkPoint and is joined by name. Autograd's device threads are named "backward:<device>", forked
// and joined by BackwardScope. stop() merges the logs in a canonical order, so two recordings of
// the same program are equal byte for byte whatever the scheduling.
#pragma once

#include "simulator/operation_graph.hpp"

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <string>
#include <vector>

namespace bench::training {

// An issued operation of the current recording: (log of a host thread, position in it).
struct OpRef {
  std::int32_t thread = simulator::kNone;
  std::int32_t index = simulator::kNone;
  bool valid() const { return thread >= 0; }
  friend bool operator==(const OpRef&, const OpRef&) = default;
};

void start_recording();
// Ends the recording. The caller fills model, strategy, batch, world size and counts of the graph.
simulator::OperationGraph stop_recording();
bool recording();

// Phase of the operations that this host thread (and its backward threads) issues.
class PhaseScope {
 public:
  explicit PhaseScope(simulator::Phase phase);
  ~PhaseScope();
  PhaseScope(const PhaseScope&) = delete;
  PhaseScope& operator=(const PhaseScope&) = delete;

 private:
  simulator::Phase previous_;
};
simulator::Phase current_phase();

// Category of memory that this host thread allocates; without one: activations.
class CategoryScope {
 public:
  explicit CategoryScope(simulator::MemoryCategory category);
  ~CategoryScope();
  CategoryScope(const CategoryScope&) = delete;
  CategoryScope& operator=(const CategoryScope&) = delete;

 private:
  simulator::MemoryCategory previous_;
};
simulator::MemoryCategory current_category();

// Re-labels the allocation behind a vgpu tensor, also one made before; other tensors are ignored.
void tag(const at::Tensor& tensor, simulator::MemoryCategory category);

// --- host threads

// Where a host thread forks: what the current thread had issued at that moment.
struct ForkPoint {
  std::vector<OpRef> issued;
  simulator::Phase phase = simulator::Phase::other;
};
ForkPoint fork();

// Names the current OS thread for its lifetime, e.g. "replica:1". The same name may be used again
// later in the recording: operations then continue that thread's log.
class HostThreadScope {
 public:
  HostThreadScope(const std::string& name, const ForkPoint& from);
  ~HostThreadScope();
  HostThreadScope(const HostThreadScope&) = delete;
  HostThreadScope& operator=(const HostThreadScope&) = delete;

 private:
  void* previous_ = nullptr;
  simulator::Phase previous_phase_;
};
// The current thread goes on after everything the named thread has issued (std::thread::join).
void join(const std::string& name);

// Around a call into the autograd engine: device threads that execute operations inside are
// "backward:<device>", forked here with phase `backward`, and joined when the scope ends.
class BackwardScope {
 public:
  BackwardScope();
  ~BackwardScope();
  BackwardScope(const BackwardScope&) = delete;
  BackwardScope& operator=(const BackwardScope&) = delete;

 private:
  PhaseScope phase_;
};
// loss.backward() inside a BackwardScope.
void run_backward(const at::Tensor& loss);

// --- explicit operations; all return an invalid OpRef when nothing is recorded

enum Stream : std::int32_t { kComputeStream, kCommunicationStream, kHostToDevice, kDeviceToHost };

// Host-only work, e.g. record_host("replicate", modules * devices).
OpRef record_host(const std::string& name, std::uint32_t items);

// A copy that did not go through an operator (operators record theirs). -1 = host memory.
OpRef record_copy(const at::Tensor& source, const at::Tensor& destination, bool blocking);

// One member of a collective: buffers read and written on one device. Waits for the last writers
// of `reads`, and becomes the last writer of `writes`.
struct CollectiveMember {
  std::int32_t device = 0;
  std::vector<at::Tensor> reads;
  std::vector<at::Tensor> writes;
};
struct CollectiveSpec {
  simulator::CollectiveKind kind = simulator::CollectiveKind::all_reduce;
  std::string name;                 // "nccl::broadcast"
  std::uint64_t payload_bytes = 0;  // per rank
  std::int32_t root = simulator::kNone;
  bool across_ranks = false;
  bool blocking = false;
  simulator::DType dtype = simulator::DType::float32;
  std::int32_t stream = kCommunicationStream;
};
// Records one operation per member, all in a group of their own. Between the devices of a process
// (DataParallel) there are several members; across ranks there is one, this rank's.
std::vector<OpRef> record_collective(const CollectiveSpec& spec,
                                     const std::vector<CollectiveMember>& members);

// Compute on `device` issued from now on by this host thread waits for `op` (a CUDA event wait).
void wait_on_device(std::int32_t device, const std::vector<OpRef>& ops);
// The host thread blocks until `ops` have finished (cudaStreamSynchronize, Work::wait on Gloo).
void wait_on_host(const std::vector<OpRef>& ops);

// Suspends recording on this thread: for work that has no counterpart on a GPU.
class RecordingPause {
 public:
  RecordingPause();
  ~RecordingPause();
  RecordingPause(const RecordingPause&) = delete;
  RecordingPause& operator=(const RecordingPause&) = delete;

 private:
  bool previous_;
};

simulator::DType record_dtype(at::ScalarType type);

}  // namespace bench::training
