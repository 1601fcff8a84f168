// Which devices a run gets: real, virtual by request, virtual by default; and what --gpus selects.
#include "bench/core/error.hpp"
#include "bench/plan/devices.hpp"
#include "bench/plan/gpu_list.hpp"

#include <gtest/gtest.h>

namespace bench {
namespace {

VirtualMachine fake_machine(const std::string& name) {
  const auto count = std::stoi(name);  // "4xv100-sxm2"
  return {name + " title", count, 16ull << 30};
}

Hardware two_gpus() {
  Hardware hardware;
  hardware.gpus = {{"H200", "GPU-a", 100, 90, 0}, {"H200", "GPU-b", 95, 10, 0}};
  return hardware;
}

Hardware no_gpus() {
  Hardware hardware;
  hardware.unavailable = "no driver";
  return hardware;
}

template <class E, class F>
std::string message(F call) {
  try {
    call();
  } catch (const E& error) {
    return error.what();
  }
  return "no error";
}

TEST(Devices, RealGpusAreUsedWhereThereAreSome) {
  const Devices devices = resolve_devices({}, two_gpus(), fake_machine);
  EXPECT_EQ(devices.kind, DeviceKind::cuda);
  EXPECT_EQ(devices.count, 2);
  EXPECT_EQ(devices.memory_bytes, 95U) << "of the smallest GPU";
  EXPECT_TRUE(devices.notes.empty());
}

TEST(Devices, AMachineIsSimulatedEvenBesideRealGpus) {
  const Devices devices = resolve_devices({{}, "4xv100-sxm2", ""}, two_gpus(), fake_machine);
  EXPECT_EQ(devices.kind, DeviceKind::vgpu);
  EXPECT_EQ(devices.count, 4);
  EXPECT_EQ(devices.memory_bytes, 16ull << 30);
}

TEST(Devices, WithoutGpusTheDefaultMachineHoldsAllThatWereAskedFor) {
  EXPECT_EQ(resolve_devices({{}, "", ""}, no_gpus(), fake_machine).machine, "4xv100-sxm2");
  EXPECT_EQ(resolve_devices({{}, "", "0,1"}, no_gpus(), fake_machine).machine, "4xv100-sxm2");
  EXPECT_EQ(resolve_devices({{}, "", "0,6"}, no_gpus(), fake_machine).machine, "7xv100-sxm2");
  EXPECT_EQ(resolve_devices({{}, "", "auto:8"}, no_gpus(), fake_machine).machine, "8xv100-sxm2");
  EXPECT_EQ(resolve_devices({{}, "", "16"}, no_gpus(), fake_machine).machine, "3xdgx-1-v100");
  EXPECT_THROW(resolve_devices({{}, "", "4000"}, no_gpus(), fake_machine), MachineError);
}

TEST(Devices, TheFirstNoteSaysThatItIsSimulatedAndWhy) {
  const Devices devices = resolve_devices({}, no_gpus(), fake_machine);
  ASSERT_FALSE(devices.notes.empty());
  EXPECT_EQ(devices.notes[0],
            "simulated on the default machine 4xv100-sxm2: no driver; --machine chooses another");
}

TEST(Devices, ContradictionsAreRefused) {
  EXPECT_THROW(resolve_devices({DeviceKind::cuda, "4xv100-sxm2", ""}, two_gpus(), fake_machine),
               UsageError);
  EXPECT_THROW(resolve_devices({DeviceKind::cuda, "", ""}, no_gpus(), fake_machine), MachineError);
}

TEST(GpuList, FormsAndMistakes) {
  EXPECT_EQ(parse_gpu_list("2,0").indices, (std::vector<int>{2, 0}));
  EXPECT_EQ(parse_gpu_list("all").kind, GpuList::Kind::all);
  EXPECT_EQ(parse_gpu_list("-1").kind, GpuList::Kind::all);
  EXPECT_EQ(parse_gpu_list("auto:3").count, 3);
  for (const char* bad :
       {"0,0", "0,-1", "0,,1", "0,1,", "one", "auto:", "auto:0", "auto:x", "0;1"}) {
    EXPECT_THROW(parse_gpu_list(bad), UsageError) << bad;
  }
  EXPECT_EQ(message<UsageError>([] { parse_gpu_list("0,1,0"); }),
            "--gpus: GPU 0 is listed twice in '0,1,0'");
}

TEST(GpuSelection, KeepsTheOrderSoThatTheFirstIsPrimary) {
  Devices devices = resolve_devices({{}, "4xv100-sxm2", ""}, no_gpus(), fake_machine);
  EXPECT_EQ(select_gpus("2,0", devices), (std::vector<int>{2, 0}));
  EXPECT_EQ(select_gpus("all", devices), (std::vector<int>{0, 1, 2, 3}));
}

TEST(GpuSelection, MissingDevicesSayWhichThereAre) {
  Devices devices = resolve_devices({{}, "4xv100-sxm2", ""}, no_gpus(), fake_machine);
  EXPECT_EQ(message<MachineError>([&] { select_gpus("0,7", devices); }),
            "--gpus: no GPU 7 on 4xv100-sxm2; it has GPUs 0 to 3");
  EXPECT_THROW(select_gpus("auto:5", devices), MachineError);
}

TEST(GpuSelection, AutoTakesTheLeastUsed) {
  Devices devices = resolve_devices({}, two_gpus(), fake_machine);
  EXPECT_EQ(select_gpus("auto:1", devices), std::vector<int>{1});
  EXPECT_EQ(select_gpus("auto:2", devices), (std::vector<int>{0, 1}));
}

TEST(GpuSelection, AutoOnVirtualGpusGoesByIndexAndSaysSo) {
  Devices devices = resolve_devices({{}, "4xv100-sxm2", ""}, no_gpus(), fake_machine);
  EXPECT_EQ(select_gpus("auto:2", devices), (std::vector<int>{0, 1}));
  EXPECT_NE(devices.notes.back().find("by index"), std::string::npos);
}

TEST(VisibleGpus, FollowsCudaVisibleDevices) {
  const auto gpus = two_gpus().gpus;
  EXPECT_EQ(visible_gpus(gpus, "1,0")[0].uuid, "GPU-b");
  EXPECT_EQ(visible_gpus(gpus, "GPU-b").size(), 1u);
  EXPECT_EQ(visible_gpus(gpus, "").size(), 0u);
  EXPECT_EQ(visible_gpus(gpus, "1,9,0").size(), 1u);  // CUDA stops at the first that is not there
  EXPECT_EQ(visible_gpus(gpus, "-1").size(), 0u);
  EXPECT_EQ(visible_gpus(gpus, "MIG-1/2").size(), 1u);
}

}  // namespace
}  // namespace bench
