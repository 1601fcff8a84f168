#include "training/devices/memory_ledger.hpp"

#include "training/devices/vgpu.hpp"

#include <c10/cuda/CUDACachingAllocator.h>

#include <sys/resource.h>

namespace bench::training {

void reset_peaks(const std::vector<c10::Device>& devices) {
  for (const auto& device : devices) {
    if (device.is_cuda()) c10::cuda::CUDACachingAllocator::resetPeakStats(device.index());
    if (device.is_privateuseone()) reset_peak(device.index());
  }
}

std::uint64_t peak_memory(c10::Device device) {
  if (device.is_privateuseone()) return peak_bytes(device.index());
  if (device.is_cuda()) {
    const auto stats = c10::cuda::CUDACachingAllocator::getDeviceStats(device.index());
    constexpr auto kAll = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);
    return static_cast<std::uint64_t>(stats.allocated_bytes[kAll].peak);
  }
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;  // Linux reports KiB
}

}  // namespace bench::training
