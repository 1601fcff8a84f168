// The machine catalogue, the names it answers to, and what it refuses: every contradiction in a
// file is named with its line.
#include "bench/core/error.hpp"
#include "bench/core/temporary_directory.hpp"
#include "simulator/machine.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <random>

namespace bench::simulator {
namespace {

std::string failure_of(const std::string& name) {
  try {
    load_machine(name);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// A machine file that a test changes in one place.
class MachineFile : public testing::Test {
 protected:
  std::string failure_after(const std::string& from, const std::string& to) {
    std::string text = kText;
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    return failure_with(text);
  }

  std::string failure_with(const std::string& text) {
    std::ofstream(path_) << text;
    const std::string message = failure_of(path_);
    return contains(message, path_ + ":") ? message.substr(path_.size() + 1) : message;
  }

  static constexpr const char* kText = R"(title = "Box"
gpu = "titan-rtx"
gpus = 4

[nvlink]
kind = "mesh"
pairs = [[0, 1, 2], [2, 3, 2]]

[pcie]
switches = [[0, 1], [2, 3]]
switch_sockets = [0, 1]

[host]
socket_link = "socket-amd"

[network]
link = "ib-edr-100"
nics = 2
)";
  const TemporaryDirectory folder_;
  const std::string path_ = folder_.file("machine.toml");
};

TEST(MachineCatalog, EveryEntryLoads) {
  const auto entries = machine_catalog();
  EXPECT_GE(entries.size(), 30U);
  for (const MachineCatalogEntry& entry : entries) {
    const Machine machine = load_machine(entry.name);
    EXPECT_EQ(machine.gpu_count(), entry.gpus) << entry.name;
    EXPECT_GT(machine.gpu.memory_bytes(), 0U) << entry.name;
    EXPECT_FALSE(entry.source.empty()) << entry.name;
  }
}

TEST(MachineCatalog, CountsOfGpusAndNodes) {
  EXPECT_EQ(load_machine("4xv100-sxm2").gpu_count(), 4);
  EXPECT_EQ(load_machine("v100").gpu.name, "v100-sxm2");
  EXPECT_EQ(load_machine("128xdgx-a100").gpu_count(), 1024);
  EXPECT_EQ(load_machine("4xtitan-rtx").node.nvlink, NvlinkKind::none);
}

TEST(MachineCatalog, FirstGpusOfAMeshKeepTheirLinks) {
  const Machine machine = load_machine("2xv100-sxm2");
  ASSERT_EQ(machine.node.nvlink_pairs.size(), 1U);
  EXPECT_EQ(machine.node.nvlink_pairs[0].links, 1);
}

TEST(MachineCatalog, UnknownAndImpossibleNames) {
  EXPECT_TRUE(contains(failure_of("dgx-a10"), "did you mean dgx-a100"));
  EXPECT_TRUE(contains(failure_of("4xv10"), "v100"));
  EXPECT_TRUE(contains(failure_of("9xh100"), "at most 8 h100-sxm5"));
  EXPECT_TRUE(contains(failure_of("2xpcie-8x4090"), "no network"));
  EXPECT_TRUE(contains(failure_of("0xa100"), "count from 1"));
  EXPECT_TRUE(contains(failure_of("missing.toml"), "cannot read"));
}

TEST(MachineCatalog, FilesCanBeCopied) {
  EXPECT_TRUE(contains(machine_file_text("gpus/v100-sxm2.toml"), "fp32_tflops"));
  EXPECT_EQ(machine_file_text("gpus/none.toml"), "");
}

TEST_F(MachineFile, Loads) {
  EXPECT_EQ(failure_with(kText), "");
  const Machine machine = load_machine("3x" + path_);
  EXPECT_EQ(machine.gpu_count(), 12);
  EXPECT_EQ(machine.node.sockets, 2);
  EXPECT_DOUBLE_EQ(machine.node.nic_bandwidth, 12);
}

TEST_F(MachineFile, CopiedCatalogueFilesLoad) {
  EXPECT_EQ(failure_with(machine_file_text("nodes/dgx-a100.toml")), "");
  EXPECT_EQ(failure_with(machine_file_text("gpus/h100-sxm5.toml")), "");
  EXPECT_EQ(load_machine("2x" + path_).gpu_count(), 2);
}

TEST_F(MachineFile, RefusesWithLine) {
  struct Bad {
    const char* from;
    const char* to;
    const char* message;
  };
  constexpr Bad kBad[] = {
      {"gpus = 4", "gpus = 0", "3: gpus: expected an integer from 1"},
      {"gpus = 4", "gpus = \"4\"", "3: gpus: expected an integer from 1"},
      {"gpus = 4\n", "", "1: missing key 'gpus'"},
      {"gpus = 4", "gpuz = 4", "1: missing key 'gpus'"},
      {"nics = 2", "nics = 2\nspeed = 3", "19: unknown key in [network] 'speed'"},
      {"titan-rtx", "titan-rtz", "2: unknown GPU 'titan-rtz'; did you mean titan-rtx"},
      {"[2, 3, 2]]", "[2, 4, 2]]", "7: pairs: [2, 4] is a link to nowhere"},
      {"[2, 3, 2]]", "[0, 3, 2]]", "7: pairs: [0, 3]: GPU 0 would need 4 NVLinks"},
      {"[2, 3, 2]]", "[1, 0, 0]]", "7: pairs: [1, 0] has no links"},
      {"[2, 3, 2]]", "[2, 2, 1]]", "7: pairs: [2, 2] links a GPU to itself"},
      {"\"mesh\"", "\"ring\"", "6: kind: expected none, mesh or nvswitch"},
      {"\"mesh\"", "\"none\"", "6: kind: a mesh needs pairs"},
      {"[[0, 1], [2, 3]]", "[[0, 1], [2]]", "10: switches: GPU 3 is behind none"},
      {"[[0, 1], [2, 3]]", "[[0, 1], [1, 2, 3]]", "10: switches: GPU 1 is behind two"},
      {"[[0, 1], [2, 3]]", "[[0, 1], [2, 9]]", "10: switches: GPU 9 is not there"},
      {"[0, 1]\n\n[host]", "[0]\n\n[host]", "11: switch_sockets: expected 2 sockets"},
      {"socket_link = \"socket-amd\"\n", "", "13: missing key 'socket_link' in [host]"},
      {"ib-edr-100", "ib-edr", "17: unknown link 'ib-edr'; did you mean ib-edr-100"},
      {"title = \"Box\"", "title = \"Box", "1: "},
  };
  for (const Bad& bad : kBad) {
    const std::string message = failure_after(bad.from, bad.to);
    EXPECT_TRUE(message.starts_with(bad.message)) << bad.message << "\nfound: " << message;
  }
}

TEST_F(MachineFile, RefusesImpossibleGpus) {
  const std::string gpu = machine_file_text("gpus/titan-xp.toml");
  auto failure = [&](const std::string& from, const std::string& to) {
    std::string text = gpu;
    text.replace(text.find(from), from.size(), to);
    return failure_with(text);
  };
  EXPECT_TRUE(contains(failure("memory_gb_per_s = 547.7", "memory_gb_per_s = 0"),
                       "memory_gb_per_s: expected a number above 1e-06"));
  EXPECT_TRUE(contains(failure("memory_gb_per_s = 547.7", "memory_gb_per_s = 1e-300"),
                       "above 1e-06 and at most"));
  EXPECT_TRUE(contains(failure("fp32_tflops = 12.15", "fp32_tflops = -1"), "above 1e-06"));
  EXPECT_TRUE(contains(failure("fp32_tflops = 12.15", "fp32_tflops = inf"), "above 1e-06"));
  EXPECT_TRUE(contains(failure("[3.2, 0.60]", "[3.2, 1.60]"), "at most 1"));
  EXPECT_TRUE(contains(failure("[3.2, 0.60]", "[0.2, 0.60]"), "x must ascend"));
  EXPECT_TRUE(
      contains(failure("[0.32, 0.10]", "[0.32, 0.01]"), "a larger operation would take less time"));
  EXPECT_TRUE(contains(failure("pcie-gen3", "pcie-gen9"), "did you mean pcie-gen"));
  EXPECT_TRUE(contains(failure("\"recalled\"", "\"guessed\""), "expected measured, scaled"));
}

TEST_F(MachineFile, DamagedFilesNeverCrash) {
  std::mt19937_64 random(7);
  const std::string texts[] = {kText, machine_file_text("gpus/v100-sxm2.toml")};
  for (int trial = 0; trial < 150; ++trial) {
    std::string text = texts[trial % 2];
    for (int damage = 0; damage < 3; ++damage) {
      const std::size_t at = random() % text.size();
      if (random() % 2 == 0) {
        text[at] = static_cast<char>(random() % 128);
      } else {
        text.erase(at, random() % 20);
      }
    }
    std::ofstream(path_) << text;
    try {
      EXPECT_GT(load_machine(path_).gpu_count(), 0);
    } catch (const UsageError& error) {
      EXPECT_TRUE(contains(error.what(), path_ + ":")) << error.what();
    }
  }
}

}  // namespace
}  // namespace bench::simulator
