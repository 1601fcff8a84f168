// Operation graphs survive the way to disk and back; damaged files are refused, never a crash.
#include "bench/core/error.hpp"
#include "bench/core/temporary_directory.hpp"
#include "simulator/graph_io.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "tests/unit/simulator_random_graph.hpp"

namespace bench::simulator {
namespace {

std::string failure_of(const std::string& bytes) {
  try {
    decode_graph(bytes, "step.graph");
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(GraphIo, RoundTripKeepsEveryByte) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const std::string bytes = encode_graph(random_graph(seed));
    EXPECT_EQ(encode_graph(decode_graph(bytes, "step.graph")), bytes);
  }
}

TEST(GraphIo, FileIsWrittenWholeOrNotAtAll) {
  const TemporaryDirectory folder;
  const std::string path = folder.file("step.graph");
  const OperationGraph graph = random_graph(1);
  write_graph(graph, path);
  EXPECT_EQ(encode_graph(read_graph(path)), encode_graph(graph));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
  EXPECT_THROW(write_graph(graph, folder.file("missing/step.graph")), MachineError);
  std::filesystem::remove(path);
  EXPECT_THROW(read_graph(path), UsageError);
}

TEST(GraphIo, TruncatedFileNamesFileAndOffset) {
  const std::string bytes = encode_graph(random_graph(3));
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const std::string message = failure_of(bytes.substr(0, size));
    ASSERT_NE(message, "") << "accepted " << size << " of " << bytes.size() << " bytes";
    ASSERT_EQ(message.rfind("step.graph: offset ", 0), 0U) << message;
  }
}

TEST(GraphIo, DamagedBytesAreRefused) {
  const std::string bytes = encode_graph(random_graph(4));
  std::mt19937_64 random(4);
  for (int trial = 0; trial < 2000; ++trial) {
    std::string damaged = bytes;
    damaged[random() % damaged.size()] ^= static_cast<char>(1 + random() % 255);
    EXPECT_NE(failure_of(damaged), "");
  }
}

TEST(GraphIo, OtherVersionAndOtherFilesAreNamed) {
  std::string bytes = encode_graph(random_graph(5));
  bytes[8] = 9;
  EXPECT_NE(failure_of(bytes).find("version 9, expected 1"), std::string::npos);
  EXPECT_NE(failure_of("hello").find("not an operation graph"), std::string::npos);
}

TEST(GraphIo, InconsistentGraphIsRefused) {
  OperationGraph graph = random_graph(6);
  graph.operations[3].device = graph.devices;
  EXPECT_NE(failure_of(encode_graph(graph)).find("operation 3: device out of range"),
            std::string::npos);
}

}  // namespace
}  // namespace bench::simulator
