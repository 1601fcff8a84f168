// The operations that are not operators: host work, copies, collectives and waits.
#include "training/devices/recorder.hpp"
#include "training/devices/recorder_log.hpp"
#include "training/devices/vgpu_memory.hpp"

#include <ATen/ATen.h>

namespace bench::training {

using simulator::kNone;
using simulator::Operation;
using simulator::OpKind;

simulator::DType record_dtype(at::ScalarType type) {
  using simulator::DType;
  switch (type) {
    case at::kFloat:
      return DType::float32;
    case at::kDouble:
      return DType::float64;
    case at::kHalf:
      return DType::float16;
    case at::kBFloat16:
      return DType::bfloat16;
    case at::kLong:
      return DType::int64;
    case at::kInt:
      return DType::int32;
    case at::kByte:
      return DType::uint8;
    case at::kBool:
      return DType::boolean;
    default:
      return DType::other;
  }
}

OpRef record_host(const std::string& name, std::uint32_t items) {
  if (!recording()) return {};
  LoggedOperation logged;
  logged.op.kind = OpKind::host;
  logged.op.host_items = items;
  logged.name = name;
  return log_operation(std::move(logged), {}, {});
}

namespace {

// Stream of a copy and the device it is queued on. Copies between devices run in order on the
// source's compute stream (as copy_kernel_cuda does).
void place_copy(Operation& op, std::int32_t source, std::int32_t destination) {
  op.kind = OpKind::copy;
  op.device = source;
  op.peer = destination;
  if (source == kNone) {
    op.stream = kHostToDevice;
  } else if (destination == kNone) {
    op.stream = kDeviceToHost;
  } else {
    op.stream = kComputeStream;
  }
}

}  // namespace

OpRef record_copy(const at::Tensor& source, const at::Tensor& destination, bool blocking) {
  if (!recording()) return {};
  Block* from = block_of(source);
  Block* to = block_of(destination);
  LoggedOperation logged;
  place_copy(logged.op, from ? from->device : kNone, to ? to->device : kNone);
  logged.name = "aten::copy_";
  logged.op.dtype = record_dtype(destination.scalar_type());
  logged.op.blocking = blocking;
  logged.op.bytes_moved = destination.nbytes();
  logged.op.bytes_read = logged.op.bytes_written = destination.nbytes();
  return log_operation(std::move(logged), std::span(&from, 1), std::span(&to, 1));
}

std::vector<OpRef> record_collective(const CollectiveSpec& spec,
                                     const std::vector<CollectiveMember>& members) {
  std::vector<OpRef> result;
  if (!recording()) return result;
  const std::uint32_t group = next_collective_group();
  for (const CollectiveMember& member : members) {
    LoggedOperation logged;
    Operation& op = logged.op;
    op.kind = OpKind::collective;
    op.collective = spec.kind;
    op.dtype = spec.dtype;
    op.device = member.device;
    op.stream = spec.stream;
    op.group = group;
    op.root = spec.root;
    op.across_ranks = spec.across_ranks;
    op.blocking = spec.blocking;
    op.bytes_moved = spec.payload_bytes;
    op.bytes_read = op.bytes_written = spec.payload_bytes;
    logged.name = spec.name;
    std::vector<Block*> reads;
    std::vector<Block*> writes;
    for (const at::Tensor& tensor : member.reads) reads.push_back(block_of(tensor));
    for (const at::Tensor& tensor : member.writes) writes.push_back(block_of(tensor));
    result.push_back(log_operation(std::move(logged), reads, writes));
  }
  return result;
}

void wait_on_host(const std::vector<OpRef>& ops) {
  if (!recording()) return;
  LoggedOperation logged;
  logged.op.kind = OpKind::sync;
  logged.op.blocking = true;
  logged.name = "synchronize";
  for (const OpRef& op : ops) {
    if (op.valid()) logged.device_deps.push_back(op);
  }
  log_operation(std::move(logged), {}, {});
}

}  // namespace bench::training
