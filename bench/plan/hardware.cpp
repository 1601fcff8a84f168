#include "bench/plan/hardware.hpp"

#include "bench/plan/dynamic_library.hpp"
#include "bench/plan/nvml.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <string_view>

namespace bench {
namespace {

// Containers sometimes carry the CUDA driver without NVML. This is slower (it starts the driver)
// and knows neither memory in use nor load, so it comes second.
Hardware query_cuda_driver() {
  Hardware hardware;
  const DynamicLibrary library("libcuda.so.1");
  int (*init)(unsigned) = nullptr;
  int (*count)(int*) = nullptr;
  int (*name)(char*, int, int) = nullptr;
  if (!library.loaded() || !library.find("cuInit", init) ||
      !library.find("cuDeviceGetCount", count)) {
    hardware.unavailable = "no CUDA driver (libcuda.so.1 is not installed)";
    return hardware;
  }
  int gpus = 0;
  if (init(0) != 0 || count(&gpus) != 0 || gpus == 0) {
    hardware.unavailable = "the CUDA driver sees no GPU";
    return hardware;
  }
  library.find("cuDeviceGetName", name);
  for (int index = 0; index < gpus; ++index) {
    char text[96] = "GPU";
    if (name != nullptr) name(text, sizeof text, index);
    hardware.gpus.push_back({text, "", 0, 0, 0});
  }
  hardware.notes.emplace_back("NVML is missing: memory in use and load of the GPUs are unknown");
  return hardware;
}

std::optional<HardwareGpu> find_gpu(const std::vector<HardwareGpu>& all, std::string_view entry) {
  std::size_t index = 0;
  const auto [end, error] = std::from_chars(entry.data(), entry.data() + entry.size(), index);
  if (error == std::errc() && end == entry.data() + entry.size()) {
    return index < all.size() ? std::optional(all[index]) : std::nullopt;
  }
  // A slice of a GPU: CUDA shows it as a device of its own, NVML does not list it among them.
  if (entry.starts_with("MIG-")) return HardwareGpu{"MIG slice", std::string(entry), 0, 0, 0};
  if (!entry.starts_with("GPU-")) return std::nullopt;
  for (const HardwareGpu& gpu : all) {
    if (gpu.uuid.starts_with(entry)) return gpu;
  }
  return std::nullopt;
}

}  // namespace

std::vector<HardwareGpu> visible_gpus(const std::vector<HardwareGpu>& all,
                                      const std::string& text) {
  std::vector<HardwareGpu> visible;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const auto gpu = find_gpu(all, std::string_view(text).substr(begin, end - begin));
    if (!gpu) break;
    visible.push_back(*gpu);
    begin = end + 1;
  }
  return visible;
}

Hardware query_hardware() {
  Hardware hardware = query_nvml();
  if (hardware.gpus.empty()) {
    // The driver library applies CUDA_VISIBLE_DEVICES itself.
    Hardware driver = query_cuda_driver();
    if (!driver.gpus.empty()) return driver;
    return hardware;
  }
  if (const char* visible = std::getenv("CUDA_VISIBLE_DEVICES")) {
    const std::size_t installed = hardware.gpus.size();
    hardware.gpus = visible_gpus(hardware.gpus, visible);
    const std::string shown = "CUDA_VISIBLE_DEVICES='" + std::string(visible) + "' shows " +
                              std::to_string(hardware.gpus.size()) + " of " +
                              std::to_string(installed) + " GPUs";
    hardware.notes.push_back(shown);
    if (hardware.gpus.empty()) hardware.unavailable = shown;
  }
  return hardware;
}

}  // namespace bench
