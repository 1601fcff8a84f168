// Wirings that a machine file can describe, and what copies and NCCL's rings make of them.
#include "bench/core/error.hpp"
#include "bench/core/temporary_directory.hpp"
#include "simulator/collective_time.hpp"
#include "simulator/topology.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <numeric>
#include <string>

namespace bench::simulator {
namespace {

class Wiring : public ::testing::Test {
 protected:
  Machine machine(const std::string& text) {
    std::ofstream(path_) << text;
    return load_machine(path_);
  }

  std::string refusal(const std::string& text) {
    try {
      (void)machine(text);
    } catch (const UsageError& error) {
      const std::string message = error.what();
      EXPECT_EQ(message.find(path_ + ":"), 0U) << message;
      return message.substr(std::min(message.size(), path_.size() + 1));
    }
    return "";
  }

  static NcclTopology job(const Machine& machine, std::vector<int> gpus) {
    return Topology(machine, std::move(gpus)).job();
  }

  const TemporaryDirectory folder_;
  const std::string path_ = folder_.file("wiring.toml");
};

// Two sockets with a switch each; cards 0-1 and 2-3 are bridged by two NVLinks.
constexpr const char* kPairs = R"(title = "Pairs"
gpu = "titan-rtx"
gpus = 4
[nvlink]
kind = "mesh"
pairs = [[0, 2, 2], [1, 3, 2]]
[pcie]
switches = [[0, 2], [1, 3]]
switch_sockets = [0, 1]
[host]
socket_gb_per_s = 10
)";

std::string with(std::string text, const std::string& from, const std::string& to) {
  text.replace(text.find(from), from.size(), to);
  return text;
}

TEST_F(Wiring, BridgedPairsKeepNvlinkAndOthersPassPcie) {
  const Machine pairs = machine(kPairs);
  const NcclTopology pair = job(pairs, {1, 3});
  EXPECT_TRUE(pair.nvlink);
  EXPECT_DOUBLE_EQ(pair.ring_gb_per_s, 40);
  const NcclTopology all = job(pairs, {0, 1, 2, 3});
  EXPECT_FALSE(all.nvlink);
  // 0-2 over the bridge, 2-1 between the sockets, 1-3 over the bridge, 3-0 back: one hop for each
  // direction of the link between the sockets.
  EXPECT_DOUBLE_EQ(all.ring_gb_per_s, 10);
  EXPECT_DOUBLE_EQ(job(pairs, {0, 1}).ring_gb_per_s, 10);
}

TEST_F(Wiring, CopiesPreferTheBridge) {
  const Machine pairs = machine(kPairs);
  const Topology topology(pairs, {0, 1, 2, 3});
  EXPECT_EQ(topology.path(0, 2).size(), 1U);
  std::string names;
  for (const std::uint32_t link : topology.path(0, 1)) names += topology.links()[link].name + ";";
  EXPECT_NE(names.find("socket 0-1"), std::string::npos) << names;
  EXPECT_EQ(names.find("staging"), std::string::npos) << names;
}

TEST_F(Wiring, PeerToPeerMayEndAtTheSocket) {
  const std::string text = with(kPairs, "switch_sockets = [0, 1]",
                                "switch_sockets = [0, 1]\npeer_to_peer_across_sockets = false\n"
                                "staged_gb_per_s = 5");
  const Machine box = machine(text);
  EXPECT_DOUBLE_EQ(job(box, {0, 1}).ring_gb_per_s, 5);
  EXPECT_DOUBLE_EQ(job(box, {0, 2}).ring_gb_per_s, 40);
  const Topology topology(box, {0, 1});
  std::string names;
  for (const std::uint32_t link : topology.path(0, 1)) names += topology.links()[link].name + ";";
  EXPECT_NE(names.find("staging"), std::string::npos) << names;
}

std::string staged_box(const std::string& switches, const std::string& sockets) {
  return "title = \"Staged\"\ngpu = \"rtx-4090\"\ngpus = 4\n[pcie]\npeer_to_peer = false\n"
         "staged_gb_per_s = 20\nswitches = " +
         switches + "\nswitch_sockets = " + sockets + "\n";
}

TEST_F(Wiring, StagedHopsShareTheUplinkOfTheirSwitch) {
  const Machine apart = machine(staged_box("[[0], [1], [2], [3]]", "[0, 0, 0, 0]"));
  EXPECT_DOUBLE_EQ(job(apart, {0, 1, 2, 3}).ring_gb_per_s, 20);
  const Machine together = machine(staged_box("[[0, 1, 2, 3]]", "[0]"));
  EXPECT_DOUBLE_EQ(job(together, {0, 1, 2, 3}).ring_gb_per_s, 24.0 / 4);
  EXPECT_DOUBLE_EQ(job(together, {0, 1}).ring_gb_per_s, 24.0 / 2);
}

TEST_F(Wiring, PeerTrafficBehindOneSwitchLeavesTheUplinkAlone) {
  const Machine box = machine(
      with(staged_box("[[0, 1, 2, 3]]", "[0]"), "peer_to_peer = false\n", "peer_to_peer = true\n"));
  EXPECT_DOUBLE_EQ(job(box, {0, 1, 2, 3}).ring_gb_per_s, 24);
}

TEST_F(Wiring, NarrowSlotsSlowTheCard) {
  const Machine box = machine(with(kPairs, "[pcie]\n", "[pcie]\ngb_per_s = 6\n"));
  EXPECT_DOUBLE_EQ(job(box, {0, 1}).ring_gb_per_s, 6);
}

// Two nodes; adapters 0 and 1 sit behind switches 0 and 1, two more behind switch 1.
std::string rails(const std::string& nic_switches) {
  return "title = \"Rails\"\ngpu = \"v100-pcie\"\ngpus = 4\nnodes = 2\n[pcie]\n"
         "switches = [[0, 1], [2, 3]]\nswitch_sockets = [0, 0]\n[network]\ngb_per_s = 3\nnics = "
         "4\n" +
         nic_switches;
}

TEST_F(Wiring, GpusReachTheAdaptersOfTheirSwitch) {
  const Machine spread = machine(rails(""));
  EXPECT_DOUBLE_EQ(job(spread, {0, 4}).network_gb_per_s, 3);
  EXPECT_DOUBLE_EQ(job(spread, {0, 1, 2, 3, 4, 5, 6, 7}).network_gb_per_s, 12);
  const Machine uneven = machine(rails("nic_switches = [0, 1, 1, 1]\n"));
  EXPECT_DOUBLE_EQ(job(uneven, {0, 4}).network_gb_per_s, 3);
  EXPECT_DOUBLE_EQ(job(uneven, {2, 6}).network_gb_per_s, 9);
  EXPECT_DOUBLE_EQ(job(uneven, {0, 2, 4, 6}).network_gb_per_s, 12);
  const Machine far = machine(rails("nic_switches = [1, 1, 1, 1]\n"));
  EXPECT_DOUBLE_EQ(job(far, {0, 4}).network_gb_per_s, 3) << "one adapter behind another switch";
  EXPECT_DOUBLE_EQ(job(far, {2, 6}).network_gb_per_s, 12) << "PCIe bounds one GPU's adapters";
}

TEST_F(Wiring, TheSlowestNodeBoundsAllOfThem) {
  const Machine two = load_machine("2xdgx-1-v100");
  EXPECT_DOUBLE_EQ(job(two, {0, 1, 2, 3, 4, 5, 6, 7, 8}).network_gb_per_s, 12);
  const Machine one_adapter = load_machine("4xv100x8-1edr");
  std::vector<int> all(32);
  std::iota(all.begin(), all.end(), 0);
  EXPECT_DOUBLE_EQ(job(one_adapter, all).network_gb_per_s, 12);
}

TEST_F(Wiring, ContradictionsAreRefusedWithTheirLine) {
  struct Bad {
    const char* from;
    const char* to;
    const char* message;
  };
  constexpr Bad kBad[] = {
      {"socket_gb_per_s = 10", "socket_gb_per_s = 0",
       "11: socket_gb_per_s: expected a number above"},
      {"socket_gb_per_s = 10", "socket_gb_per_s = 10\nsocket_link = \"socket-amd\"",
       "11: socket_gb_per_s: contradicts socket_link"},
      {"socket_gb_per_s = 10", "slowdown = 1", "10: missing key 'socket_link' in [host]"},
      {"switch_sockets = [0, 1]", "switch_sockets = [0, 2]",
       "9: switch_sockets: no switch on socket 1"},
      {"[pcie]\n", "[pcie]\ngb_per_s = 0\n", "8: gb_per_s: expected a number above 1e-06"},
      {"[pcie]\n", "[pcie]\npeer_to_peer = false\npeer_to_peer_across_sockets = true\n",
       "9: peer_to_peer_across_sockets: contradicts peer_to_peer"},
      {"[pcie]\nswitches = [[0, 2], [1, 3]]\nswitch_sockets = [0, 1]\n", "",
       "1: missing table [pcie]: without it no GPU is connected"},
      {"gpus = 4", "gpus = 4\nnodes = 2", "4: nodes: several nodes need a table [network]"},
      {"socket_gb_per_s = 10",
       "socket_gb_per_s = 10\n[network]\ngb_per_s = 12\nnics = 2\n"
       "nic_switches = [0]",
       "15: nic_switches: expected 2 switches"},
      {"socket_gb_per_s = 10",
       "socket_gb_per_s = 10\n[network]\ngb_per_s = 12\nnics = 1\n"
       "nic_switches = [2]",
       "15: nic_switches: switch 2 is not there"},
      {"socket_gb_per_s = 10", "socket_gb_per_s = 10\n[network]\ngb_per_s = -1\nnics = 1",
       "13: gb_per_s: expected a number above 1e-06"},
  };
  EXPECT_EQ(refusal(kPairs), "");
  for (const Bad& bad : kBad) {
    const std::string message = refusal(with(kPairs, bad.from, bad.to));
    EXPECT_TRUE(message.starts_with(bad.message)) << bad.message << "\nfound: " << message;
  }
}

TEST_F(Wiring, ExamplesOfTheManualLoad) {
  std::ifstream file(BENCH_SOURCE_FOLDER "/docs/machines.md");
  const std::string page{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const std::string open = "```toml\n";
  int examples = 0;
  for (std::size_t at = page.find(open); at != std::string::npos; at = page.find(open, at)) {
    at += open.size();
    const std::string text = page.substr(at, page.find("```", at) - at);
    EXPECT_EQ(refusal(text), "") << text;
    ++examples;
  }
  EXPECT_EQ(examples, 4);
}

}  // namespace
}  // namespace bench::simulator
