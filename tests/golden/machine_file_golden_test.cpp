// The file that `bench calibrate` writes: its text, and that it is a machine like any other.
#include "bench/calibrate/machine_text.hpp"
#include "bench/core/error.hpp"
#include "bench/core/strategy.hpp"
#include "bench/core/temporary_directory.hpp"
#include "bench/launch/mock_calibration.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/golden/golden.hpp"

namespace bench {
namespace {

const CalibrationContext kContext{"bench calibrate --gpus 0 --out machine.toml",
                                  "2026-01-02T03:04:05Z"};

Job mock_job(int gpus) {
  Job job;
  job.work.device = DeviceKind::cuda;
  if (gpus > 1) job.work.strategy = Strategy::distributed;
  job.work.gpus.resize(static_cast<std::size_t>(gpus));
  return job;
}

simulator::Machine loaded(const std::string& text) {
  const TemporaryDirectory folder;
  const std::string path = folder.file("calibrated.toml");
  std::ofstream(path) << text;
  return simulator::load_machine(path);
}

TEST(MachineFile, HasThisText) {
  CalibrationSamples samples = mock::calibration(mock_job(1));
  samples.notes = {"copies from pageable memory: no memory"};
  expect_golden("machine.toml", machine_text(fit_machine(samples), samples, kContext));
}

TEST(MachineFile, IsAMachineWithTheFittedFigures) {
  const CalibrationSamples samples = mock::calibration(mock_job(1));
  const CalibratedMachine fitted = fit_machine(samples);
  const auto machine = loaded(machine_text(fitted, samples, kContext));
  EXPECT_EQ(machine.gpu_count(), 1);
  EXPECT_EQ(machine.gpu.title, "mock GPU");
  EXPECT_EQ(machine.provenance(), simulator::Provenance::measured);
  EXPECT_EQ(machine.gpu.context_gib.provenance, simulator::Provenance::measured);
  EXPECT_EQ(machine.gpu.overlap_slowdown.provenance, simulator::Provenance::scaled);
  const auto written = fit_errors(samples, machine.gpu);
  const auto in_memory = fit_errors(samples, fitted.machine.gpu);
  for (std::size_t i = 0; i < written.size(); ++i) {
    ASSERT_NEAR(written[i], in_memory[i], 1e-3) << "figures are rounded to four digits";
  }
}

TEST(MachineFile, HoldsSeveralGpusAndTheirAllReduce) {
  const CalibrationSamples samples = mock::calibration(mock_job(4));
  const auto machine = loaded(machine_text(fit_machine(samples), samples, kContext));
  EXPECT_EQ(machine.gpu_count(), 4);
  EXPECT_EQ(machine.node.nvlink, simulator::NvlinkKind::nvswitch);
  ASSERT_EQ(machine.collectives.size(), 1U);
  EXPECT_EQ(machine.collectives[0].ranks, 4);
  EXPECT_EQ(machine.collectives[0].points.size(), samples.all_reduce.size());
  EXPECT_EQ(machine.collectives[0].provenance, simulator::Provenance::measured);
}

TEST(MachineFile, KeepsMeshesHostsWithoutPeersAndACpu) {
  CalibrationSamples samples = mock::calibration(mock_job(1));
  samples.sockets = {0, 1};
  samples.peers = {{0, 1, true, 100}, {1, 0, true, 100}};
  EXPECT_EQ(loaded(machine_text(fit_machine(samples), samples, kContext)).node.nvlink,
            simulator::NvlinkKind::mesh);
  samples.peers = {{0, 1, false, 7}, {1, 0, false, 8}};
  const auto staged = loaded(machine_text(fit_machine(samples), samples, kContext));
  EXPECT_FALSE(staged.node.peer_to_peer);
  EXPECT_DOUBLE_EQ(staged.node.staged_bandwidth, 7);
  samples.device_kind = "cpu";
  samples.compute_capability = 0;
  samples.context_bytes = 0;
  samples.sockets = {0};
  samples.peers.clear();
  const auto cpu = loaded(machine_text(fit_machine(samples), samples, kContext));
  EXPECT_LT(cpu.node.host_slowdown, 1e-3);
  EXPECT_EQ(cpu.gpu.tf32_tflops, 0);
}

TEST(MachineFile, QuotesWhateverADeviceIsCalled) {
  CalibrationSamples samples = mock::calibration(mock_job(1));
  samples.device_name = "odd \"GPU\" \\ of\nus";
  const auto machine = loaded(machine_text(fit_machine(samples), samples, kContext));
  EXPECT_EQ(machine.gpu.title, "odd \"GPU\" \\ of us");
}

}  // namespace
}  // namespace bench
