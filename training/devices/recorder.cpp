#include "training/devices/recorder.hpp"

#include "training/devices/recorder_log.hpp"
#include "training/devices/recorder_order.hpp"
#include "training/devices/vgpu_device.hpp"
#include "training/devices/vgpu_memory.hpp"

#include <c10/util/Exception.h>
#include <torch/csrc/autograd/function.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <thread>
#include <unordered_map>

namespace bench::training {

using simulator::kNone;
using simulator::MemoryCategory;
using simulator::Operation;
using simulator::OpKind;
using simulator::Phase;

namespace {

// A call into the autograd engine that is under way. One at a time per process.
struct BackwardContext {
  std::uint64_t id = 0;
  bool active = false;
  ForkPoint from;
  std::thread::id owner;
  std::vector<HostLog*> logs;  // of the device threads that took part
};

struct Recording {
  std::mutex mutex;  // guards everything below
  std::uint32_t id = 0;
  std::deque<std::unique_ptr<HostLog>> logs;
  std::unordered_map<std::string, HostLog*> by_name;
  std::deque<AllocationRecord> allocations;
  std::uint32_t next_group = 1;
  BackwardContext backward;
};
Recording& state() {
  static auto* instance = new Recording;
  return *instance;
}
std::atomic<bool> active{false};

thread_local HostLog* thread_log = nullptr;
thread_local std::uint32_t thread_recording = 0;
thread_local bool paused = false;
thread_local std::optional<Phase> thread_phase;
thread_local MemoryCategory thread_category = MemoryCategory::activations;

HostLog* log_named(const std::string& name) {
  Recording& all = state();
  HostLog*& log = all.by_name[name];
  if (!log) {
    all.logs.push_back(std::make_unique<HostLog>());
    log = all.logs.back().get();
    log->name = name;
    log->index = static_cast<std::int32_t>(all.logs.size()) - 1;
  }
  return log;
}

bool in_backward_of_another_thread() {
  const BackwardContext& backward = state().backward;
  return backward.active && backward.owner != std::this_thread::get_id();
}

// The log of a device thread of the engine, forked from the thread that called backward.
HostLog* backward_log() {
  Recording& all = state();
  std::scoped_lock lock(all.mutex);
  HostLog* log = log_named("backward:" + std::to_string(current_vgpu_index()));
  if (log->backward_id != all.backward.id) {
    log->backward_id = all.backward.id;
    log->issue_deps.insert(log->issue_deps.end(), all.backward.from.issued.begin(),
                           all.backward.from.issued.end());
    all.backward.logs.push_back(log);
  }
  return log;
}

// The log of this thread, or null where the thread has no name in this recording.
HostLog* current_log() {
  if (thread_log && thread_recording == state().id) return thread_log;
  if (in_backward_of_another_thread()) return backward_log();
  return nullptr;
}

// Threads' ends: what a finished thread still had to bind goes on with the one that joins it.
void take_over(HostLog& to, HostLog& from) {
  if (const OpRef last = from.last_operation(); last.valid()) to.issue_deps.push_back(last);
  for (const OpRef& dep : from.issue_deps) to.issue_deps.push_back(dep);
  to.allocations.insert(to.allocations.end(), from.allocations.begin(), from.allocations.end());
  to.frees.insert(to.frees.end(), from.frees.begin(), from.frees.end());
  from.issue_deps.clear();
  from.allocations.clear();
  from.frees.clear();
}

void bind_memory(HostLog& log, OpRef op) {
  for (AllocationRecord* record : log.allocations) record->allocated_by = op;
  for (AllocationRecord* record : log.frees) record->freed_by = op;
  log.allocations.clear();
  log.frees.clear();
}

void depend(std::vector<OpRef>& deps, const OpRef& op) {
  if (op.valid() && std::find(deps.begin(), deps.end(), op) == deps.end()) deps.push_back(op);
}

const Operation& operation_of(const OpRef& ref) {
  return state().logs[ref.thread]->operations[ref.index].op;
}

// Operations of one thread on one stream are in order anyway and need no dependency.
bool ordered_by_stream(const HostLog& log, const Operation& op, const OpRef& earlier) {
  if (earlier.thread != log.index) return false;
  const Operation& other = operation_of(earlier);
  return other.kind != OpKind::host && other.device == op.device && other.stream == op.stream;
}

void add_dependencies(const HostLog& log, LoggedOperation& logged, std::span<Block* const> blocks) {
  Recording& all = state();
  std::scoped_lock lock(all.mutex);
  for (const Block* block : blocks) {
    if (!block || block->writer_recording != all.id) continue;
    if (!ordered_by_stream(log, logged.op, block->last_writer)) {
      depend(logged.device_deps, block->last_writer);
    } else if (log.backward_id != 0) {
      depend(logged.thread_deps, block->last_writer);
    }
  }
}

void add_waits(HostLog& log, LoggedOperation& logged) {
  if (logged.op.kind == OpKind::host || logged.op.stream != kComputeStream) return;
  std::erase_if(log.device_waits, [&](const auto& wait) {
    if (wait.first != logged.op.device) return false;
    depend(logged.device_deps, wait.second);
    return true;
  });
}

void note_node(const HostLog& log, LoggedOperation& logged) {
  logged.backward_id = log.backward_id;
  if (const auto node = torch::autograd::get_current_node()) {
    logged.node = node.get();
    logged.node_sequence = node->sequence_nr();
  }
}

OpRef append(HostLog& log, LoggedOperation logged) {
  for (const OpRef& dep : log.issue_deps) depend(logged.issue_deps, dep);
  log.issue_deps.clear();
  add_waits(log, logged);
  if (thread_phase) {
    logged.op.phase = *thread_phase;
  } else if (in_backward_of_another_thread()) {
    logged.op.phase = state().backward.from.phase;
  }
  if (log.backward_id != 0) note_node(log, logged);
  {
    // Deques keep references valid; other threads look up earlier operations meanwhile.
    std::scoped_lock lock(state().mutex);
    log.operations.push_back(std::move(logged));
  }
  const OpRef ref{log.index, static_cast<std::int32_t>(log.operations.size()) - 1};
  bind_memory(log, ref);
  return ref;
}

void note_uses(std::span<Block* const> blocks, const OpRef& op) {
  Recording& all = state();
  std::scoped_lock lock(all.mutex);
  for (const Block* block : blocks) {
    if (block && block->recording == all.id) block->record->uses.push_back(op);
  }
}

HostLog* log_for_operation() {
  if (!recording() || paused) return nullptr;
  HostLog* log = current_log();
  TORCH_CHECK(log,
              "vgpu recorder: an operation was issued on a host thread without a name; wrap the "
              "thread in HostThreadScope and calls into the autograd engine in BackwardScope");
  return log;
}

}  // namespace

OpRef HostLog::last_operation() const {
  if (operations.empty()) return {};
  return {index, static_cast<std::int32_t>(operations.size()) - 1};
}

void log_allocation(Block& block) {
  if (!recording()) return;
  Recording& all = state();
  HostLog* log = current_log();
  AllocationRecord* record = nullptr;
  {
    std::scoped_lock lock(all.mutex);
    all.allocations.push_back({block.device, block.category, block.charged_bytes});
    record = &all.allocations.back();
  }
  block.recording = all.id;
  block.record = record;
  if (log) log->allocations.push_back(record);
}

void log_free(Block& block) {
  if (!recording() || block.recording != state().id) return;
  HostLog* log = current_log();
  if (!log) return;
  // Memory taken since the last operation and given back after it cannot both be bound to the next
  // one (frees come first there): the host's own allocation call stands between them.
  if (!log->allocations.empty()) {
    LoggedOperation call;
    call.op.kind = OpKind::host;
    call.name = "aten::empty";
    append(*log, std::move(call));
  }
  block.record->freed_on = log->index;
  block.record->freed_in = log->backward_id;
  log->frees.push_back(block.record);
}

OpRef log_operation(LoggedOperation operation, std::span<Block* const> reads,
                    std::span<Block* const> writes) {
  HostLog* log = log_for_operation();
  if (!log) return {};
  add_dependencies(*log, operation, reads);
  add_dependencies(*log, operation, writes);
  const OpRef ref = append(*log, std::move(operation));
  note_uses(reads, ref);
  note_uses(writes, ref);
  for (Block* block : writes) {
    if (!block) continue;
    block->writer_recording = state().id;
    block->last_writer = ref;
  }
  return ref;
}

void read_after_last(const at::Tensor& tensor) {
  HostLog* log = log_for_operation();
  Block* block = block_of(tensor);
  if (!log || !block || log->operations.empty()) return;
  block->writer_recording = state().id;
  block->last_writer = log->last_operation();
}

bool recording() { return active.load(std::memory_order_relaxed); }

void start_recording() {
  TORCH_CHECK(!recording(), "vgpu recorder: a recording is under way");
  Recording& all = state();
  {
    std::scoped_lock lock(all.mutex);
    ++all.id;
    all.logs.clear();
    all.by_name.clear();
    all.allocations.clear();
    all.next_group = 1;
    all.backward = {};
    thread_log = log_named("main");
    thread_recording = all.id;
  }
  for_each_block([&](Block& block) {
    all.allocations.push_back({block.device, block.category, block.charged_bytes});
    block.recording = all.id;
    block.record = &all.allocations.back();
  });
  active = true;
}

simulator::OperationGraph stop_recording() {
  TORCH_CHECK(recording(), "vgpu recorder: nothing is being recorded");
  active = false;
  Recording& all = state();
  std::scoped_lock lock(all.mutex);
  // Memory taken after the last operation has no operation to stand at; it gets one.
  HostLog* main = all.by_name.at("main");
  if (!main->allocations.empty()) {
    LoggedOperation end;
    end.op.kind = OpKind::host;
    end.name = "step_end";
    end.issue_deps = main->issue_deps;
    main->operations.push_back(std::move(end));
    bind_memory(*main, main->last_operation());
  }
  return merge_logs(all.logs, all.allocations);
}

PhaseScope::PhaseScope(Phase phase) : previous_(thread_phase.value_or(Phase::other)) {
  thread_phase = phase;
}
PhaseScope::~PhaseScope() {
  if (previous_ == Phase::other) {
    thread_phase.reset();
  } else {
    thread_phase = previous_;
  }
}
Phase current_phase() { return thread_phase.value_or(Phase::other); }

CategoryScope::CategoryScope(MemoryCategory category) : previous_(thread_category) {
  thread_category = category;
}
CategoryScope::~CategoryScope() { thread_category = previous_; }
MemoryCategory current_category() { return thread_category; }

void tag(const at::Tensor& tensor, MemoryCategory category) {
  Block* block = block_of(tensor);
  if (!block) return;
  block->category = category;
  if (recording() && block->recording == state().id) block->record->category = category;
}

ForkPoint fork() {
  ForkPoint point;
  point.phase = current_phase();
  if (!recording()) return point;
  if (const HostLog* log = current_log()) {
    point.issued = log->issue_deps;
    if (const OpRef last = log->last_operation(); last.valid()) point.issued.push_back(last);
  }
  return point;
}

HostThreadScope::HostThreadScope(const std::string& name, const ForkPoint& from)
    : previous_(thread_log), previous_phase_(current_phase()) {
  if (from.phase != Phase::other) thread_phase = from.phase;
  if (!recording()) return;
  Recording& all = state();
  std::scoped_lock lock(all.mutex);
  HostLog* log = log_named(name);
  log->issue_deps.insert(log->issue_deps.end(), from.issued.begin(), from.issued.end());
  thread_log = log;
  thread_recording = all.id;
}

HostThreadScope::~HostThreadScope() {
  thread_log = static_cast<HostLog*>(previous_);
  if (previous_phase_ == Phase::other) {
    thread_phase.reset();
  } else {
    thread_phase = previous_phase_;
  }
}

void join(const std::string& name) {
  if (!recording()) return;
  HostLog* log = current_log();
  Recording& all = state();
  std::scoped_lock lock(all.mutex);
  const auto found = all.by_name.find(name);
  TORCH_CHECK(log && found != all.by_name.end(), "vgpu recorder: no host thread is named '", name,
              "' in this recording");
  take_over(*log, *found->second);
}

BackwardScope::BackwardScope() : phase_(Phase::backward) {
  if (!recording()) return;
  ForkPoint from = fork();
  Recording& all = state();
  std::scoped_lock lock(all.mutex);
  TORCH_CHECK(!all.backward.active, "vgpu recorder: two calls into the autograd engine at once");
  all.backward = {all.backward.id + 1, true, std::move(from), std::this_thread::get_id(), {}};
}

BackwardScope::~BackwardScope() {
  if (!recording()) return;
  HostLog* log = current_log();
  Recording& all = state();
  std::scoped_lock lock(all.mutex);
  if (!all.backward.active || all.backward.owner != std::this_thread::get_id()) return;
  all.backward.active = false;
  // In the order of devices, not of the threads' first operations.
  std::sort(all.backward.logs.begin(), all.backward.logs.end(),
            [](const HostLog* a, const HostLog* b) { return a->name < b->name; });
  for (HostLog* device_log : all.backward.logs) {
    if (log) take_over(*log, *device_log);
  }
}

void run_backward(const at::Tensor& loss) {
  BackwardScope scope;
  loss.backward();
}

std::uint32_t next_collective_group() {
  Recording& all = state();
  std::scoped_lock lock(all.mutex);
  return all.next_group++;
}

void wait_on_device(std::int32_t device, const std::vector<OpRef>& ops) {
  HostLog* log = log_for_operation();
  if (!log) return;
  for (const OpRef& op : ops) {
    if (op.valid()) log->device_waits.emplace_back(device, op);
  }
}

RecordingPause::RecordingPause() : previous_(paused) { paused = true; }
RecordingPause::~RecordingPause() { paused = previous_; }

}  // namespace bench::training
