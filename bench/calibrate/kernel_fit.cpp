#include "bench/calibrate/kernel_fit.hpp"

#include "bench/calibrate/curve_fit.hpp"
#include "bench/core/error.hpp"
#include "simulator/kernel_time.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>

namespace bench {
namespace {

using simulator::DType;
using simulator::GpuSpec;
using simulator::Provenance;

constexpr double kNsPerUs = 1000;
constexpr double kFlopsPerNsOfTflops = 1000;
// A curve through fewer points would be a guess.
constexpr std::size_t kLeastPoints = 4;
// A sample says something about a roof when its kernel takes at least this many times as long as
// its launch; below, the difference of the two is mostly noise.
constexpr double kClearOfLaunch = 1.5;
// An operation that spends more than this share of its time on memory says little about
// arithmetic.
constexpr double kMemoryBound = 0.7;
constexpr double kNoLimit = std::numeric_limits<double>::infinity();
// Operators that stream through memory and do nothing else decide the memory curve.
constexpr const char* kStreaming[] = {"aten::relu", "aten::relu_", "aten::add",
                                      "aten::mul",  "aten::copy_", "aten::threshold_backward"};
// Factors nearer to 1 are within the noise of a fit, and the file stays short without them.
constexpr double kPlainFactor = 0.03;

using Filter = std::function<bool(const OperationSample&)>;

bool is_half(DType dtype) { return dtype == DType::float16 || dtype == DType::bfloat16; }

bool is_streaming(const std::string& name) {
  return std::find(std::begin(kStreaming), std::end(kStreaming), name) != std::end(kStreaming);
}

bool is_convolution(const OperationSample& s) { return simulator::is_convolution(s.name); }

bool is_forward_convolution(const OperationSample& s) {
  return is_convolution(s) && !is_convolution_backward(s.name);
}

class KernelFit {
 public:
  KernelFit(const CalibrationSamples& samples, GpuSpec& gpu) : samples_(samples), gpu_(gpu) {}

  void run() {
    gpu_.launch_ns = {samples_.launch_ns, Provenance::measured};
    fit_memory();
    fit_rates();
    fit_matrix_products();
    // Small grouped convolutions reach into sizes that dense ones do not show, so that curve and
    // groups are fitted in turns; they settle within two.
    constexpr int kTurns = 4;
    for (int turn = 0; turn < kTurns; ++turn) {
      fit_convolutions(/*with_groups=*/turn > 0);
      fit_groups();
    }
    fit_factors();
  }

 private:
  // Time without the launches; 0 where the launches are most of it.
  double beyond_launch(const OperationSample& s) const {
    const double launches = s.launches * samples_.launch_ns;
    return s.ns >= kClearOfLaunch * launches ? s.ns - launches : 0;
  }

  void fit_memory() {
    double best = 0;
    for (const OperationSample& s : samples_.operations) {
      const double ns = beyond_launch(s);
      if (is_streaming(s.name) && ns > 0) best = std::max(best, s.bytes() / ns);
    }
    gpu_.memory_bandwidth = {best, Provenance::measured};
    std::vector<EfficiencyPoint> points;
    for (const OperationSample& s : samples_.operations) {
      const double ns = beyond_launch(s);
      if (!is_streaming(s.name) || ns <= 0) continue;
      const double ideal = s.bytes() / best;
      points.push_back({ideal / kNsPerUs, ideal / ns});
    }
    require(points.size(), "operators that stream through memory");
    gpu_.memory_efficiency = fit_efficiency(points);
  }

  double best_tflops(const Filter& wanted) const {
    double best = 0;
    for (const OperationSample& s : samples_.operations) {
      const double ns = beyond_launch(s);
      if (ns > 0 && wanted(s)) best = std::max(best, s.flops / ns / kFlopsPerNsOfTflops);
    }
    return best;
  }

  double best_of(DType dtype) const {
    return best_tflops([&](const OperationSample& s) {
      return s.dtype == dtype && (is_convolution(s) || is_matrix_product(s.name));
    });
  }

  // TF32 is what float32 convolutions use from compute capability 8.0 on (PyTorch's default).
  void fit_rates() {
    constexpr double kTf32Since = 8;
    const bool tf32 = samples_.compute_capability >= kTf32Since;
    const auto measured = [](double tflops) {
      return simulator::Quantity{tflops, Provenance::measured};
    };
    gpu_.fp32_tflops = measured(best_tflops([&](const OperationSample& s) {
      return s.dtype == DType::float32 &&
             (is_matrix_product(s.name) || (!tf32 && is_convolution(s)));
    }));
    if (gpu_.fp32_tflops <= 0) require(0, "matrix products of float32");
    if (tf32) {
      gpu_.tf32_tflops = measured(best_tflops(
          [](const OperationSample& s) { return s.dtype == DType::float32 && is_convolution(s); }));
    }
    gpu_.fp16_tflops = measured(best_of(DType::float16));
    gpu_.bf16_tflops = measured(best_of(DType::bfloat16));
  }

  // Points of operations that arithmetic bounds. Where hardly any are, memory hides the arithmetic
  // of the others too: they are taken as they come, because either roof then explains them.
  std::vector<EfficiencyPoint> arithmetic_points(const Filter& wanted) const {
    auto points = points_below(wanted, kMemoryBound);
    return points.size() >= kLeastPoints ? points : points_below(wanted, kNoLimit);
  }

  // Points of operations that spend at most `share` of their time on memory.
  std::vector<EfficiencyPoint> points_below(const Filter& wanted, double share_of_memory) const {
    std::vector<EfficiencyPoint> points;
    for (const OperationSample& s : samples_.operations) {
      const double ns = beyond_launch(s);
      if (ns <= 0 || s.flops <= 0 || !wanted(s)) continue;
      const double ideal_memory = s.bytes() / gpu_.memory_bandwidth;
      const double memory = ideal_memory / gpu_.memory_efficiency.at(ideal_memory / kNsPerUs);
      if (memory > share_of_memory * ns) continue;
      const double rate = simulator::peak_tflops(s.operation(), s.name, gpu_);
      const double ideal = s.flops / (rate * kFlopsPerNsOfTflops);
      const double share =
          is_convolution(s) ? simulator::grouped_convolution_share(s.shape, gpu_) : 1;
      points.push_back({ideal / kNsPerUs, ideal / ns / share});
    }
    return points;
  }

  void fit_matrix_products() {
    const auto wanted = [](bool half) {
      return [half](const OperationSample& s) {
        return is_matrix_product(s.name) && is_half(s.dtype) == half;
      };
    };
    const auto points = arithmetic_points(wanted(false));
    require(points.size(), "matrix products of float32");
    gpu_.matrix_efficiency = fit_efficiency(points);
    const auto half = arithmetic_points(wanted(true));
    if (half.size() >= kLeastPoints) gpu_.matrix_efficiency_16bit = fit_efficiency(half);
  }

  void fit_convolutions(bool with_groups) {
    const auto wanted = [with_groups](bool half) {
      return [half, with_groups](const OperationSample& s) {
        return is_forward_convolution(s) && is_half(s.dtype) == half &&
               (with_groups || !is_grouped(s));
      };
    };
    const auto points = arithmetic_points(wanted(false));
    require(points.size(), "convolutions of float32");
    gpu_.convolution_efficiency = fit_efficiency(points);
    const auto half = arithmetic_points(wanted(true));
    if (half.size() >= kLeastPoints) gpu_.convolution_efficiency_16bit = fit_efficiency(half);
  }

  // Sum of absolute logarithmic errors over the samples wanted.
  double loss(const Filter& wanted) const {
    double sum = 0;
    for (const OperationSample& s : samples_.operations) {
      if (!wanted(s)) continue;
      sum += std::abs(std::log(simulator::kernel_ns(s.operation(), s.name, s.shape, gpu_) / s.ns));
    }
    return sum;
  }

  std::size_t count(const Filter& wanted) const {
    return static_cast<std::size_t>(
        std::count_if(samples_.operations.begin(), samples_.operations.end(), wanted));
  }

  static bool is_depthwise(const OperationSample& s) {
    return is_grouped(s) && s.shape.find(",1,", s.shape.rfind('[')) != std::string::npos;
  }

  // Forward convolutions only: what backward ones take more is a factor of that operator.
  void fit_groups() {
    const Filter grouped = [](const OperationSample& s) {
      return is_grouped(s) && !is_depthwise(s) && is_forward_convolution(s);
    };
    const Filter depthwise = [](const OperationSample& s) {
      return is_depthwise(s) && is_forward_convolution(s);
    };
    if (count(grouped) >= 2) {
      gpu_.grouped_halfway = best_positive(0.1, 10'000, [&](double halfway) {
        gpu_.grouped_halfway = halfway;
        return loss(grouped);
      });
    }
    if (count(depthwise) >= 2) {
      gpu_.depthwise_share = best_positive(1e-4, 1, [&](double share) {
        gpu_.depthwise_share = share;
        return loss(depthwise);
      });
    }
  }

  // The median over an operator's samples that are clear of their launches.
  void fit_factors() {
    std::map<std::string, std::vector<double>> ratios;
    for (const OperationSample& s : samples_.operations) {
      const bool own_curve =
          is_streaming(s.name) || is_matrix_product(s.name) || is_forward_convolution(s);
      const double ns = beyond_launch(s);
      if (own_curve || ns <= 0) continue;
      const double modelled = simulator::kernel_ns(s.operation(), s.name, s.shape, gpu_) -
                              s.launches * samples_.launch_ns;
      if (modelled > 0) ratios[s.name].push_back(ns / modelled);
    }
    for (const auto& [name, values] : ratios) {
      const double factor = median(values);
      if (std::abs(factor - 1) > kPlainFactor) gpu_.operator_factors[name] = factor;
    }
  }

  static void require(std::size_t points, const char* what) {
    if (points >= kLeastPoints) return;
    throw MachineError("calibration: " + std::to_string(points) + " usable samples of " + what +
                       ", expected " + std::to_string(kLeastPoints) + " or more");
  }

  const CalibrationSamples& samples_;
  GpuSpec& gpu_;
};

}  // namespace

bool is_matrix_product(const std::string& name) {
  return name == "aten::mm" || name == "aten::addmm" || name == "aten::bmm" ||
         name == "aten::baddbmm";
}

bool is_convolution_backward(const std::string& name) {
  return name.starts_with("aten::convolution_backward");
}

bool is_grouped(const OperationSample& sample) {
  if (!simulator::is_convolution(sample.name)) return false;
  const std::size_t weight = sample.shape.rfind('[');
  if (weight == std::string::npos || weight == 0) return false;
  const std::size_t input = sample.shape.rfind('[', weight - 1);
  if (input == std::string::npos) return false;
  const auto second = [&](std::size_t from) {
    const std::size_t comma = sample.shape.find(',', from);
    return comma == std::string::npos ? 0 : std::atol(sample.shape.c_str() + comma + 1);
  };
  return second(weight) < second(input);
}

void fit_kernels(const CalibrationSamples& samples, simulator::GpuSpec& gpu) {
  KernelFit(samples, gpu).run();
}

}  // namespace bench
