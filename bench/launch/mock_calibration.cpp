#include "bench/launch/mock_calibration.hpp"

#include "bench/core/strategy.hpp"
#include "simulator/host_costs.hpp"
#include "simulator/kernel_time.hpp"

#include <cmath>
#include <cstdio>

namespace bench::mock {
namespace {

using simulator::DType;

constexpr const char* kGpu = "a100-sxm4-40gb";
constexpr double kNoise = 0.02;
constexpr DType kTypes[] = {DType::float32, DType::float16, DType::bfloat16};

std::uint64_t bytes_of(DType dtype, double elements) {
  return static_cast<std::uint64_t>(elements * (dtype == DType::float32 ? 4 : 2));
}

// Independent of the standard library's distributions, which differ between implementations.
class Noise {
 public:
  explicit Noise(std::uint64_t seed) : state_(seed) {}
  // A normal variable, from the sum of twelve uniform ones.
  double normal() {
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += uniform();
    return sum;
  }

 private:
  double uniform() {  // splitmix64
    std::uint64_t z = state_ += 0x9E3779B97F4A7C15ULL;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;
  }
  std::uint64_t state_;
};

OperationSample streaming(double elements, DType dtype) {
  OperationSample s{"aten::add", "[" + std::to_string(static_cast<long>(elements)) + "]", dtype};
  s.flops = elements;
  s.bytes_read = bytes_of(dtype, 2 * elements);
  s.bytes_written = bytes_of(dtype, elements);
  return s;
}

OperationSample product(double m, double k, double n, DType dtype) {
  char shape[64];
  std::snprintf(shape, sizeof shape, "[%.0f,%.0f]x[%.0f,%.0f]", m, k, k, n);
  OperationSample s{"aten::mm", shape, dtype};
  s.flops = 2 * m * k * n;
  s.bytes_read = bytes_of(dtype, m * k + k * n);
  s.bytes_written = bytes_of(dtype, m * n);
  return s;
}

struct Layer {
  double channels, size, filters, kernel, groups;
};

OperationSample convolution(double batch, const Layer& l, DType dtype, bool backward) {
  char shape[96];
  std::snprintf(shape, sizeof shape, "[%.0f,%.0f,%.0f,%.0f]x[%.0f,%.0f,%.0f,%.0f]", batch,
                l.channels, l.size, l.size, l.filters, l.channels / l.groups, l.kernel, l.kernel);
  OperationSample s{backward ? "aten::convolution_backward" : "aten::convolution", shape, dtype};
  const double input = batch * l.channels * l.size * l.size;
  const double output = batch * l.filters * l.size * l.size;
  const double weights = l.filters * l.channels / l.groups * l.kernel * l.kernel;
  const int times = backward ? 2 : 1;
  s.launches = times;
  s.flops = times * 2 * output * weights / l.filters;
  s.bytes_read = bytes_of(dtype, times * input + weights);
  s.bytes_written = bytes_of(dtype, output + (backward ? weights : 0));
  return s;
}

constexpr Layer kLayers[] = {{64, 56, 64, 1, 1},    {64, 56, 64, 3, 1},    {256, 56, 64, 1, 1},
                             {128, 28, 128, 3, 1},  {512, 28, 128, 1, 1},  {256, 14, 256, 3, 1},
                             {1024, 14, 256, 1, 1}, {512, 7, 512, 3, 1},   {2048, 7, 512, 1, 1},
                             {64, 112, 64, 3, 1},   {128, 56, 128, 3, 32}, {256, 28, 256, 3, 32},
                             {512, 14, 512, 3, 32}, {96, 56, 96, 3, 96},   {384, 14, 384, 3, 384}};

std::vector<OperationSample> all_operations() {
  std::vector<OperationSample> all;
  for (const DType dtype : kTypes) {
    for (double n = 1 << 14; n <= 1 << 27; n *= 4) all.push_back(streaming(n, dtype));
    for (double n = 128; n <= 8192; n *= 1.25) all.push_back(product(n, n, n, dtype));
    for (double m = 32; m <= 512; m *= 2) all.push_back(product(m, 2048, 1000, dtype));
    for (const Layer& layer : kLayers) {
      for (const double batch : {4.0, 32.0, 256.0}) {
        all.push_back(convolution(batch, layer, dtype, false));
        all.push_back(convolution(batch, layer, dtype, true));
      }
    }
  }
  return all;
}

}  // namespace

CalibrationSamples calibration_of(const simulator::GpuSpec& gpu, double host_slowdown, double noise,
                                  std::uint64_t seed) {
  CalibrationSamples samples;
  samples.device_kind = "cuda";
  samples.device_name = gpu.title;
  samples.driver = "0.0";
  samples.cuda = "0.0";
  samples.torch = "0.0";
  samples.compute_capability = gpu.compute_capability;
  samples.memory_bytes = gpu.memory_bytes();
  samples.context_bytes = static_cast<std::uint64_t>(gpu.context_gib * (1 << 30));
  samples.launch_ns = gpu.launch_ns;
  const auto costs = simulator::host_costs(HostProfile::cpp);
  samples.host = {costs.dispatch_ns * host_slowdown, costs.backward_dispatch_ns * host_slowdown,
                  costs.convolution_ns * host_slowdown};
  samples.copies = {gpu.pcie_bandwidth, gpu.pcie_bandwidth, gpu.pcie_bandwidth / 4};
  samples.sockets = {0};
  Noise random(seed);
  samples.operations = all_operations();
  for (OperationSample& s : samples.operations) {
    s.ns = simulator::kernel_ns(s.operation(), s.name, s.shape, gpu);
    s.ns *= std::exp(noise * random.normal());
  }
  return samples;
}

CalibrationSamples calibration(const Job& job) {
  CalibrationSamples samples =
      calibration_of(simulator::load_machine(kGpu).gpu, 1, kNoise, job.work.seed);
  samples.device_name = "mock GPU";
  samples.device_kind = device_kind_name(job.work.device);
  const int gpus = job.work.world_size();
  samples.sockets.assign(static_cast<std::size_t>(gpus), 0);
  for (int a = 0; a < gpus; ++a) {
    for (int b = 0; b < gpus; ++b) {
      if (a != b) samples.peers.push_back({a, b, true, 200});
    }
  }
  if (job.work.strategy != Strategy::distributed) return samples;
  for (double bytes = 4096; bytes <= 1 << 28; bytes *= 4) {
    samples.all_reduce.emplace_back(bytes, 20e3 + bytes / 100);
  }
  return samples;
}

}  // namespace bench::mock
