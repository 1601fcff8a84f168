#include "training/calibrate/call_timer.hpp"

#include <ATen/cuda/CUDAEvent.h>
#include <ATen/cuda/Sleep.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>

#include <algorithm>
#include <chrono>
#include <cmath>

namespace bench::training {
namespace {

constexpr int kWarmups = 3;
constexpr int kLeastSamples = 3;
// A stream's queue holds about a thousand launches before issuing blocks; calls launch up to four.
constexpr int kMostRepeats = 100;
// A sample should be long against the resolution of events (0.5 us) and of interrupts.
constexpr double kSampleNs = 300e3;
// No GPU of the catalogue runs faster than 3 GHz: so many cycles last at least as long.
constexpr double kCyclesPerNs = 3;
// Issuing takes longer now and then; this much of it is covered.
constexpr double kIssueMargin = 2;
constexpr double kIssueSlackNs = 50e3;

}  // namespace

double host_now_ns() {
  using namespace std::chrono;
  return duration<double, std::nano>(steady_clock::now().time_since_epoch()).count();
}

CallTime summary_of(std::vector<double> samples_ns) {
  std::sort(samples_ns.begin(), samples_ns.end());
  const auto at = [&](double share) {
    const double place = share * static_cast<double>(samples_ns.size() - 1);
    const auto below = static_cast<std::size_t>(place);
    const auto above = std::min(below + 1, samples_ns.size() - 1);
    const double part = place - static_cast<double>(below);
    return samples_ns[below] * (1 - part) + samples_ns[above] * part;
  };
  return {at(0.5), (at(0.9) - at(0.1)) / at(0.5)};
}

void wait_for(at::Device device) {
  if (device.is_cuda()) c10::cuda::device_synchronize();
}

CallTimer::CallTimer(at::Device device, bool quick)
    : device_(device), samples_(quick ? 5 : 11), budget_ns_(quick ? 30e6 : 150e6) {}

double CallTimer::host_sample(const Call& call, int repeats) const {
  const double begin = host_now_ns();
  for (int i = 0; i < repeats; ++i) call();
  return (host_now_ns() - begin) / repeats;
}

double CallTimer::cuda_sample(const Call& call, int repeats, double issue_ns) const {
  const auto stream = c10::cuda::getCurrentCUDAStream(device_.index());
  at::cuda::CUDAEvent begin(cudaEventDefault);
  at::cuda::CUDAEvent end(cudaEventDefault);
  const double covered_ns = kIssueMargin * issue_ns * repeats + kIssueSlackNs;
  at::cuda::sleep(static_cast<std::int64_t>(kCyclesPerNs * covered_ns));
  begin.record(stream);
  for (int i = 0; i < repeats; ++i) call();
  end.record(stream);
  end.synchronize();
  constexpr double kNsPerMs = 1e6;
  return begin.elapsed_time(end) * kNsPerMs / repeats;
}

CallTime CallTimer::time(const Call& call) const {
  for (int i = 0; i < kWarmups; ++i) call();
  wait_for(device_);
  const double begin = host_now_ns();
  call();
  const double issue_ns = host_now_ns() - begin;
  wait_for(device_);
  const double total_ns = host_now_ns() - begin;
  const double wanted = std::ceil(kSampleNs / total_ns);
  const int repeats = static_cast<int>(std::clamp<double>(wanted, 1, kMostRepeats));
  std::vector<double> samples;
  const double deadline = host_now_ns() + budget_ns_;
  while (static_cast<int>(samples.size()) < samples_) {
    const bool late = host_now_ns() > deadline;
    if (late && static_cast<int>(samples.size()) >= kLeastSamples) break;
    samples.push_back(device_.is_cuda() ? cuda_sample(call, repeats, issue_ns)
                                        : host_sample(call, repeats));
  }
  return summary_of(std::move(samples));
}

}  // namespace bench::training
