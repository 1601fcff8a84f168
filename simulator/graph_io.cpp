#include "simulator/graph_io.hpp"

#include "bench/core/error.hpp"
#include "bench/core/file_text.hpp"
#include "simulator/byte_stream.hpp"

#include <unistd.h>
#include <zlib.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

namespace bench::simulator {
namespace {

// File: magic, version, CRC-32 of the payload, payload.
constexpr std::string_view kMagic = "BENCHGRF";
constexpr std::uint32_t kVersion = 1;
// Least bytes of one encoded element, to refuse impossible counts.
constexpr std::size_t kLeastOperation = 36;
constexpr std::size_t kLeastAllocation = 5;

std::uint32_t checksum(std::string_view bytes) {
  uLong crc = crc32(0L, Z_NULL, 0);
  return static_cast<std::uint32_t>(
      crc32(crc, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size())));
}

// Dependencies point backwards, mostly by little: the distance is short to write.
void encode_deps(ByteWriter& out, const std::vector<std::uint32_t>& deps, std::size_t index) {
  out.unsigned_number(deps.size());
  for (const std::uint32_t dep : deps) {
    out.signed_number(static_cast<std::int64_t>(index) - static_cast<std::int64_t>(dep));
  }
}

std::vector<std::uint32_t> decode_deps(ByteReader& in, const char* what, std::size_t index) {
  std::vector<std::uint32_t> deps(in.count(what, 1));
  for (std::uint32_t& dep : deps) {
    const std::int64_t distance = in.signed_number(what);
    const auto limit = static_cast<std::int64_t>(index);
    if (distance < 1 || distance > limit) {
      in.fail(std::string(what) + " of operation " + std::to_string(index) +
              " is not an earlier operation");
    }
    dep = static_cast<std::uint32_t>(limit - distance);
  }
  return deps;
}

void encode_operation(ByteWriter& out, const Operation& op, std::size_t index) {
  out.unsigned_number(static_cast<std::uint64_t>(op.kind));
  out.unsigned_number(static_cast<std::uint64_t>(op.collective));
  out.unsigned_number(static_cast<std::uint64_t>(op.phase));
  out.unsigned_number(static_cast<std::uint64_t>(op.dtype));
  out.unsigned_number(op.name);
  out.unsigned_number(op.shape);
  out.signed_number(op.device);
  out.signed_number(op.stream);
  out.signed_number(op.peer);
  out.unsigned_number(op.host_thread);
  out.unsigned_number(op.group);
  out.signed_number(op.root);
  out.unsigned_number((op.across_ranks ? 1U : 0U) | (op.blocking ? 2U : 0U));
  out.unsigned_number(op.launches);
  out.real(op.flops);
  out.unsigned_number(op.bytes_read);
  out.unsigned_number(op.bytes_written);
  out.unsigned_number(op.bytes_moved);
  out.unsigned_number(op.host_items);
  encode_deps(out, op.device_deps, index);
  encode_deps(out, op.issue_deps, index);
}

std::uint32_t decode_u32(ByteReader& in, const char* what) {
  return static_cast<std::uint32_t>(in.unsigned_number(what, 0xffffffffU));
}

Operation decode_operation(ByteReader& in, std::size_t index) {
  Operation op;
  op.kind = static_cast<OpKind>(in.unsigned_number("operation kind", 4));
  op.collective = static_cast<CollectiveKind>(in.unsigned_number("collective kind", 5));
  op.phase = static_cast<Phase>(in.unsigned_number("phase", kPhaseCount - 1));
  op.dtype = static_cast<DType>(in.unsigned_number("dtype", 8));
  op.name = decode_u32(in, "operation name");
  op.shape = decode_u32(in, "operation shape");
  op.device = in.signed_number_32("device");
  op.stream = in.signed_number_32("stream");
  op.peer = in.signed_number_32("peer");
  op.host_thread = decode_u32(in, "host thread");
  op.group = decode_u32(in, "group");
  op.root = in.signed_number_32("root");
  const std::uint64_t flags = in.unsigned_number("flags", 3);
  op.across_ranks = (flags & 1) != 0;
  op.blocking = (flags & 2) != 0;
  op.launches = static_cast<std::uint16_t>(in.unsigned_number("launches", 0xffff));
  op.flops = in.real("flops");
  op.bytes_read = in.unsigned_number("bytes read");
  op.bytes_written = in.unsigned_number("bytes written");
  op.bytes_moved = in.unsigned_number("bytes moved");
  op.host_items = decode_u32(in, "host items");
  op.device_deps = decode_deps(in, "device dependency", index);
  op.issue_deps = decode_deps(in, "issue dependency", index);
  return op;
}

void encode_allocation(ByteWriter& out, const Allocation& allocation) {
  out.signed_number(allocation.device);
  out.unsigned_number(static_cast<std::uint64_t>(allocation.category));
  out.unsigned_number(allocation.bytes);
  out.signed_number(allocation.alloc_op);
  out.signed_number(allocation.free_op);
}

Allocation decode_allocation(ByteReader& in) {
  Allocation allocation;
  allocation.device = in.signed_number_32("allocation device");
  allocation.category =
      static_cast<MemoryCategory>(in.unsigned_number("memory category", kMemoryCategoryCount - 1));
  allocation.bytes = in.unsigned_number("allocation bytes");
  allocation.alloc_op = in.signed_number("allocating operation");
  allocation.free_op = in.signed_number("freeing operation");
  return allocation;
}

std::string encode_payload(const OperationGraph& graph) {
  ByteWriter out;
  out.text(graph.model);
  out.text(graph.strategy);
  out.signed_number(graph.global_batch);
  out.signed_number(graph.devices);
  out.signed_number(graph.world_size);
  out.signed_number(graph.rank);
  out.signed_number(graph.parameter_count);
  out.signed_number(graph.module_count);
  out.unsigned_number(graph.names.size());
  for (const std::string& name : graph.names) out.text(name);
  out.unsigned_number(graph.host_threads.size());
  for (const std::string& name : graph.host_threads) out.text(name);
  out.unsigned_number(graph.operations.size());
  for (std::size_t i = 0; i < graph.operations.size(); ++i) {
    encode_operation(out, graph.operations[i], i);
  }
  out.unsigned_number(graph.allocations.size());
  for (const Allocation& allocation : graph.allocations) encode_allocation(out, allocation);
  return out.bytes();
}

OperationGraph decode_payload(ByteReader& in) {
  OperationGraph graph;
  graph.model = in.text("model");
  graph.strategy = in.text("strategy");
  graph.global_batch = in.signed_number("global batch");
  graph.devices = in.signed_number_32("devices");
  graph.world_size = in.signed_number_32("world size");
  graph.rank = in.signed_number_32("rank");
  graph.parameter_count = in.signed_number("parameter count");
  graph.module_count = in.signed_number("module count");
  graph.names.resize(in.count("names", 1));
  for (std::string& name : graph.names) name = in.text("name");
  graph.host_threads.resize(in.count("host threads", 1));
  for (std::string& name : graph.host_threads) name = in.text("host thread name");
  const std::size_t operations = in.count("operations", 1);
  // Reserve what the bytes that follow can hold at most: an operation in memory is several times
  // its encoding, and a corrupt count must not allocate.
  graph.operations.reserve(std::min(operations, in.left() / kLeastOperation + 1));
  for (std::size_t i = 0; i < operations; ++i) {
    graph.operations.push_back(decode_operation(in, i));
  }
  graph.allocations.resize(in.count("allocations", kLeastAllocation));
  for (Allocation& allocation : graph.allocations) allocation = decode_allocation(in);
  if (in.left() != 0) in.fail(std::to_string(in.left()) + " bytes too many");
  return graph;
}

}  // namespace

std::string encode_graph(const OperationGraph& graph) {
  const std::string payload = encode_payload(graph);
  ByteWriter out;
  out.raw(kMagic);
  out.fixed32(kVersion);
  out.fixed32(checksum(payload));
  out.raw(payload);
  return out.bytes();
}

OperationGraph decode_graph(std::string_view bytes, const std::string& name) {
  ByteReader in(bytes, name);
  if (bytes.substr(0, kMagic.size()) != kMagic) in.fail("not an operation graph of bench");
  in.raw(kMagic.size(), "magic");
  const std::uint32_t version = in.fixed32("version");
  if (version != kVersion) {
    in.fail("operation graph version " + std::to_string(version) + ", expected " +
            std::to_string(kVersion) + "; record it again");
  }
  const std::uint32_t expected = in.fixed32("checksum");
  const std::uint32_t found = checksum(bytes.substr(in.offset()));
  // The payload is decoded even when its checksum is wrong, because a truncated file then says
  // where it ends; the checksum has the last word.
  OperationGraph graph = decode_payload(in);
  if (found != expected) in.fail("the checksum does not match: the file is damaged");
  check_graph(graph, name);
  return graph;
}

void write_graph(const OperationGraph& graph, const std::string& path) {
  const std::string temporary = path + ".tmp" + std::to_string(getpid());
  std::ofstream file(temporary, std::ios::binary | std::ios::trunc);
  const std::string bytes = encode_graph(graph);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  std::error_code error;
  if (file) std::filesystem::rename(temporary, path, error);
  if (!file || error) {
    std::filesystem::remove(temporary, error);
    throw MachineError(path + ": cannot write the operation graph");
  }
}

OperationGraph read_graph(const std::string& path) {
  const auto bytes = file_text(path);
  if (!bytes) throw UsageError(path + ": cannot read this operation graph");
  return decode_graph(*bytes, path);
}

}  // namespace bench::simulator
