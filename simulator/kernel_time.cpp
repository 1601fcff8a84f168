#include "simulator/kernel_time.hpp"

#include <algorithm>
#include <vector>

namespace bench::simulator {
namespace {

// 1 TFLOPS is 1000 floating-point operations per nanosecond; 1 GB/s is 1 byte per nanosecond.
constexpr double kFlopsPerNsOfTflops = 1000;
constexpr double kNsPerUs = 1000;
// Double precision on data-centre GPUs; consumer cards are slower still, but nobody trains in it.
constexpr double kFp64Share = 0.5;

double roof_ns(double ideal_ns, const EfficiencyCurve& efficiency) {
  return ideal_ns <= 0 ? 0 : ideal_ns / efficiency.at(ideal_ns / kNsPerUs);
}

// Numbers of one bracket of a shape, "[12,128,56,56]" -> 12, 128...
std::vector<double> dimensions(std::string_view bracket) {
  std::vector<double> sizes;
  double size = 0;
  bool in_number = false;
  for (const char c : bracket) {
    if (c >= '0' && c <= '9') {
      size = size * 10 + (c - '0');
      in_number = true;
      continue;
    }
    if (in_number) sizes.push_back(size);
    size = 0;
    in_number = false;
  }
  return sizes;
}

double first_positive(double a, double b) { return a > 0 ? a : b; }

// The curve of 16-bit arithmetic where there is one.
const EfficiencyCurve& arithmetic_curve(const Operation& op, bool convolution, const GpuSpec& gpu) {
  const bool half = op.dtype == DType::float16 || op.dtype == DType::bfloat16;
  const EfficiencyCurve& own =
      convolution ? gpu.convolution_efficiency_16bit : gpu.matrix_efficiency_16bit;
  if (half && !own.points.empty()) return own;
  return convolution ? gpu.convolution_efficiency : gpu.matrix_efficiency;
}

double operator_factor(std::string_view name, const GpuSpec& gpu) {
  const auto found = gpu.operator_factors.find(name);
  return found == gpu.operator_factors.end() ? 1 : found->second;
}

}  // namespace

// The shape ends with input and weight, "...[N,C,H,W]x[C_out,C/groups,k,k]", also of the backward.
double grouped_convolution_share(std::string_view shape, const GpuSpec& gpu) {
  const std::size_t weight_at = shape.rfind('[');
  if (weight_at == std::string_view::npos || weight_at == 0) return 1;
  const std::size_t input_at = shape.rfind('[', weight_at - 1);
  if (input_at == std::string_view::npos) return 1;
  const std::vector<double> weight = dimensions(shape.substr(weight_at));
  const std::vector<double> input = dimensions(shape.substr(input_at, weight_at - input_at));
  if (weight.size() < 3 || input.size() < 3 || weight[1] <= 0 || weight[1] >= input[1]) return 1;
  if (weight[1] == 1) return gpu.depthwise_share;
  return weight[1] / (weight[1] + gpu.grouped_halfway);
}

bool is_convolution(std::string_view name) { return name.find("conv") != std::string_view::npos; }

double peak_tflops(const Operation& op, std::string_view name, const GpuSpec& gpu) {
  const bool convolution = is_convolution(name);
  switch (op.dtype) {
    case DType::float16:
      return first_positive(gpu.fp16_tflops, gpu.fp32_tflops);
    case DType::bfloat16:
      return first_positive(gpu.bf16_tflops, gpu.fp32_tflops);
    case DType::float64:
      return gpu.fp32_tflops * kFp64Share;
    case DType::tfloat32:
      return first_positive(gpu.tf32_tflops, gpu.fp32_tflops);
    case DType::float32:
      return convolution ? first_positive(gpu.tf32_tflops, gpu.fp32_tflops) : gpu.fp32_tflops;
    case DType::int64:
    case DType::int32:
    case DType::uint8:
    case DType::boolean:
    case DType::other:
      break;
  }
  return gpu.fp32_tflops;
}

double kernel_ns(const Operation& op, std::string_view name, std::string_view shape,
                 const GpuSpec& gpu) {
  const double rate = peak_tflops(op, name, gpu) * kFlopsPerNsOfTflops;
  const double bytes = static_cast<double>(op.bytes_read) + static_cast<double>(op.bytes_written);
  const bool convolution = is_convolution(name);
  const double ideal = op.flops / rate;
  double arithmetic = roof_ns(ideal, arithmetic_curve(op, convolution, gpu));
  if (convolution && op.flops > 0) arithmetic /= grouped_convolution_share(shape, gpu);
  const double ideal_memory = bytes / gpu.memory_bandwidth;
  const double memory = roof_ns(ideal_memory, gpu.memory_efficiency);
  const double roof = operator_factor(name, gpu) * std::max(arithmetic, memory);
  return op.launches * gpu.launch_ns + std::max({roof, ideal, ideal_memory});
}

}  // namespace bench::simulator
