#include "simulator/kernel_time.hpp"

#include <algorithm>

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

double first_positive(double a, double b) { return a > 0 ? a : b; }

}  // namespace

double peak_tflops(const Operation& op, std::string_view name, const GpuSpec& gpu) {
  const bool convolution = name.find("conv") != std::string_view::npos;
  switch (op.dtype) {
    case DType::float16:
      return first_positive(gpu.fp16_tflops, gpu.fp32_tflops);
    case DType::bfloat16:
      return first_positive(gpu.bf16_tflops, gpu.fp32_tflops);
    case DType::float64:
      return gpu.fp32_tflops * kFp64Share;
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

double kernel_ns(const Operation& op, std::string_view name, const GpuSpec& gpu) {
  const double rate = peak_tflops(op, name, gpu) * kFlopsPerNsOfTflops;
  const double bytes = static_cast<double>(op.bytes_read) + static_cast<double>(op.bytes_written);
  const double arithmetic = roof_ns(op.flops / rate, gpu.matrix_efficiency);
  const double memory = roof_ns(bytes / gpu.memory_bandwidth, gpu.memory_efficiency);
  return op.launches * gpu.launch_ns + std::max(arithmetic, memory);
}

}  // namespace bench::simulator
