#include "training/calibrate/measure_all_reduce.hpp"

#include "training/calibrate/call_timer.hpp"

#include <torch/torch.h>

namespace bench::training {

// Ranks have to make the same number of calls, so that repetitions are fixed and not timed.
std::vector<std::pair<double, double>> measure_all_reduce(const Placement& placement, bool quick,
                                                          const std::function<void()>& heartbeat) {
  constexpr std::int64_t kLeastBytes = 4 << 10;
  constexpr int kWarmups = 3;
  constexpr int kBytesPerElement = 4;
  const at::Device device = placement.devices.at(0);
  const bool cuda = device.is_cuda();
  const std::int64_t most = cuda && !quick ? std::int64_t{1} << 30 : std::int64_t{1} << 24;
  const int rounds = quick ? 5 : 15;
  std::vector<std::pair<double, double>> points;
  for (std::int64_t bytes = kLeastBytes; bytes <= most; bytes *= 4) {
    std::vector<at::Tensor> tensors{
        at::zeros({bytes / kBytesPerElement}, at::TensorOptions(device))};
    const auto reduce = [&] { placement.group->allreduce(tensors)->wait(); };
    const int inner = cuda && bytes <= 1 << 20 ? 20 : 1;
    std::vector<double> samples;
    for (int round = -kWarmups; round < rounds; ++round) {
      wait_for(device);
      placement.group->barrier()->wait();
      const double begin = host_now_ns();
      for (int i = 0; i < inner; ++i) reduce();
      wait_for(device);
      if (round >= 0) samples.push_back((host_now_ns() - begin) / inner);
    }
    points.emplace_back(static_cast<double>(bytes), summary_of(std::move(samples)).ns);
    heartbeat();
  }
  return points;
}

}  // namespace bench::training
