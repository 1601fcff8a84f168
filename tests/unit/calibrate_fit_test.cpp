// From samples to a machine: what was put in comes out again, and nonsense is refused.
#include "bench/calibrate/curve_fit.hpp"
#include "bench/calibrate/kernel_fit.hpp"
#include "bench/calibrate/machine_fit.hpp"
#include "bench/core/error.hpp"
#include "bench/launch/mock_calibration.hpp"
#include "simulator/kernel_time.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace bench {
namespace {

constexpr double kNoise = 0.02;
constexpr std::uint64_t kSeed = 7;

simulator::GpuSpec gpu(const char* name) { return simulator::load_machine(name).gpu; }

double mean_error(const std::vector<double>& errors) {
  double sum = 0;
  for (const double error : errors) sum += std::abs(error);
  return sum / static_cast<double>(errors.size());
}

double worst_error(const std::vector<double>& errors) {
  double worst = 0;
  for (const double error : errors) worst = std::max(worst, std::abs(error));
  return worst;
}

std::string refusal(const CalibrationSamples& samples) {
  try {
    (void)fit_machine(samples);
  } catch (const MachineError& error) {
    return error.what();
  }
  return "not refused";
}

// Measured with noise of 2 %, judged against the truth without it. On average the fit has to be
// no worse than one measurement. Single operations may be further off: the catalogue's curves bend
// sharply (a factor of 6 in efficiency left of the bend, none right of it), the fit's knots lie
// elsewhere and cut the corner; and backward convolutions reach sizes that no forward one had.
TEST(CalibrateFit, GivesTimesOfAKnownGpuBack) {
  for (const char* name : {"a100-sxm4-40gb", "v100-sxm2", "rtx-4090", "h200-sxm"}) {
    const simulator::GpuSpec truth = gpu(name);
    const auto noisy = mock::calibration_of(truth, 1, kNoise, kSeed);
    const auto exact = mock::calibration_of(truth, 1, 0, kSeed);
    const auto fitted = fit_machine(noisy);
    const auto errors = fit_errors(exact, fitted.machine.gpu);
    EXPECT_LT(mean_error(errors), kNoise) << name;
    EXPECT_LT(worst_error(errors), 0.25) << name;
  }
}

TEST(CalibrateFit, GivesConstantsBack) {
  const simulator::GpuSpec truth = gpu("a100-sxm4-40gb");
  const auto fitted = fit_machine(mock::calibration_of(truth, 1.5, kNoise, kSeed));
  const simulator::Machine& machine = fitted.machine;
  EXPECT_DOUBLE_EQ(machine.gpu.launch_ns, truth.launch_ns);
  EXPECT_NEAR(machine.node.host_slowdown, 1.5, 1e-9);
  EXPECT_DOUBLE_EQ(machine.gpu.pcie_bandwidth, truth.pcie_bandwidth);
  EXPECT_NEAR(machine.gpu.memory_gib, truth.memory_gib, 1e-6);
  EXPECT_NEAR(machine.gpu.context_gib, truth.context_gib, 1e-6);
  // Peaks are the best rates that were reached: the truth's at its best efficiency, and the best of
  // several draws of noise.
  const double products = truth.matrix_efficiency.points.back().second;
  EXPECT_NEAR(machine.gpu.fp32_tflops / (truth.fp32_tflops * products), 1, 3 * kNoise);
  EXPECT_NEAR(machine.gpu.bf16_tflops / (truth.bf16_tflops * products), 1, 3 * kNoise);
  const double streams = truth.memory_efficiency.points.back().second;
  EXPECT_NEAR(machine.gpu.memory_bandwidth / (truth.memory_bandwidth * streams), 1, 3 * kNoise);
  EXPECT_NEAR(machine.gpu.grouped_halfway / truth.grouped_halfway, 1, 0.15);
  EXPECT_NEAR(machine.gpu.depthwise_share / truth.depthwise_share, 1, 0.15);
  EXPECT_TRUE(machine.gpu.operator_factors.empty() ||
              std::abs(machine.gpu.operator_factors.begin()->second - 1) < 0.08);
}

TEST(CalibrateFit, FindsOperatorsThatTakeLonger) {
  simulator::GpuSpec truth = gpu("a100-sxm4-40gb");
  truth.operator_factors["aten::convolution_backward"] = 1.6;
  const auto fitted = fit_machine(mock::calibration_of(truth, 1, kNoise, kSeed));
  EXPECT_NEAR(fitted.machine.gpu.operator_factors.at("aten::convolution_backward"), 1.6, 0.12);
}

TEST(CalibrateFit, OneOutlierDoesNotPullACurve) {
  const simulator::GpuSpec truth = gpu("a100-sxm4-40gb");
  auto samples = mock::calibration_of(truth, 1, 0, kSeed);
  for (auto& s : samples.operations) {
    if (s.shape == "[2048,2048]x[2048,2048]" && s.dtype == simulator::DType::float32) s.ns *= 5;
  }
  const auto exact = mock::calibration_of(truth, 1, 0, kSeed);
  EXPECT_LT(mean_error(fit_errors(exact, fit_machine(samples).machine.gpu)), 0.02);
}

TEST(CalibrateFit, ReportsHowWellItFits) {
  const auto fitted = fit_machine(mock::calibration_of(gpu("a100-sxm4-40gb"), 1, kNoise, kSeed));
  ASSERT_GT(fitted.lines.size(), 2U);
  const FitLine& all = fitted.lines.back();
  EXPECT_EQ(all.family, "all operators");
  EXPECT_GT(all.mean_error, 0);
  EXPECT_GE(all.worst_error, all.mean_error);
  int samples = 0;
  for (std::size_t i = 0; i + 1 < fitted.lines.size(); ++i) samples += fitted.lines[i].samples;
  EXPECT_EQ(samples, all.samples);
}

TEST(CalibrateFit, RefusesWhatItCannotFit) {
  const auto good = mock::calibration_of(gpu("a100-sxm4-40gb"), 1, 0, kSeed);
  auto samples = good;
  samples.operations.clear();
  EXPECT_NE(refusal(samples).find("0 usable samples"), std::string::npos);

  samples = good;
  std::erase_if(samples.operations, [](const auto& s) { return is_matrix_product(s.name); });
  EXPECT_NE(refusal(samples).find("matrix products of float32"), std::string::npos);

  samples = good;
  samples.operations[3].ns = 0;
  EXPECT_NE(refusal(samples).find("took no time"), std::string::npos);

  samples = good;
  samples.operations.push_back(samples.operations[3]);
  samples.operations.back().ns *= 3;
  EXPECT_NE(refusal(samples).find("another time"), std::string::npos);

  samples = good;
  samples.launch_ns = 0;
  EXPECT_NE(refusal(samples).find("empty kernel"), std::string::npos);

  samples = good;
  samples.copies = {};
  EXPECT_NE(refusal(samples).find("copies"), std::string::npos);

  samples = good;
  samples.host = {};
  EXPECT_NE(refusal(samples).find("host times"), std::string::npos);
}

TEST(CalibrateFit, RefusesSamplesThatFitNoCurve) {
  auto samples = mock::calibration_of(gpu("a100-sxm4-40gb"), 1, 0, kSeed);
  for (std::size_t i = 0; i < samples.operations.size(); ++i) {
    samples.operations[i].ns *= i % 2 == 0 ? 12 : 1;
  }
  EXPECT_NE(refusal(samples).find("fit no curve"), std::string::npos);
}

TEST(CalibrateFit, ReadsTheWiringOffTheCopies) {
  auto samples = mock::calibration_of(gpu("a100-sxm4-40gb"), 1, 0, kSeed);
  samples.sockets = {0, 0, 1, 1};
  const auto pairs = [&](auto rate, bool access) {
    samples.peers.clear();
    for (int a = 0; a < 4; ++a) {
      for (int b = 0; b < 4; ++b) {
        if (a != b) samples.peers.push_back({a, b, access, rate(a, b)});
      }
    }
    return fit_machine(samples).machine;
  };
  auto machine = pairs([](int, int) { return 230.0; }, true);
  EXPECT_EQ(machine.node.nvlink, simulator::NvlinkKind::nvswitch);
  EXPECT_EQ(machine.node.sockets, 2);
  machine = pairs([](int a, int b) { return a / 2 == b / 2 ? 50.0 : 20.0; }, true);
  EXPECT_EQ(machine.node.nvlink, simulator::NvlinkKind::mesh);
  EXPECT_EQ(machine.node.nvlink_pairs.size(), 2U);
  EXPECT_EQ(machine.gpu.nvlink_links, 1);
  machine = pairs([](int, int) { return 8.0; }, false);
  EXPECT_EQ(machine.node.nvlink, simulator::NvlinkKind::none);
  EXPECT_FALSE(machine.node.peer_to_peer);
  EXPECT_DOUBLE_EQ(machine.node.staged_bandwidth, 8);
}

TEST(CurveFit, KeepsTheRulesOfMachineFiles) {
  const auto curve =
      fit_efficiency({{1, 0.9}, {2, 0.1}, {4, 1.4}, {8, 0.2}, {16, 0.9}, {64, 0.99}});
  ASSERT_GE(curve.points.size(), 2U);
  for (std::size_t i = 0; i < curve.points.size(); ++i) {
    EXPECT_LE(curve.points[i].second, 1);
    if (i == 0) continue;
    const auto& [x, y] = curve.points[i];
    const auto& [before_x, before_y] = curve.points[i - 1];
    EXPECT_GE(x / y, before_x / before_y);
  }
  EXPECT_TRUE(fit_efficiency({}).points.empty());
  EXPECT_NEAR(fit_efficiency({{5, 0.5}}).at(5), 0.5, 1e-6);
}

TEST(CurveFit, FindsTheBestPositiveNumber) {
  const double found =
      best_positive(1e-3, 1e3, [](double x) { return std::abs(std::log(x / 37)); });
  EXPECT_NEAR(found, 37, 0.01);
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 2, 3}), 2.5);
}

}  // namespace
}  // namespace bench
