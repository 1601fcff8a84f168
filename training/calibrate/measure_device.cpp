#include "training/calibrate/measurements.hpp"

#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <cuda_runtime_api.h>

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <fstream>

namespace bench::training {
namespace {

constexpr std::int64_t kCopyBytes = std::int64_t{64} << 20;
constexpr std::int64_t kPeerCopyBytes = std::int64_t{256} << 20;

// CUDA encodes versions as decimal digits: 13000 is 13.0.
std::string cuda_version() {
  return std::to_string(CUDART_VERSION / 1000) + "." + std::to_string(CUDART_VERSION % 1000 / 10);
}

// The name that the kernel gives the processor.
std::string cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "CPU";
}

// Socket of a device by its address on the PCI bus; 0 where the kernel does not say.
int socket_of(at::Device device) {
  char address[32] = {};
  if (cudaDeviceGetPCIBusId(address, sizeof address, device.index()) != cudaSuccess) return 0;
  std::string name(address);
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  std::ifstream file("/sys/bus/pci/devices/" + name + "/numa_node");
  int node = 0;
  file >> node;
  return std::max(node, 0);
}

// Sockets are numbered as they appear: the second one used is 1, whatever the kernel calls it.
std::vector<int> sockets_of(const std::vector<at::Device>& devices) {
  std::vector<int> seen;
  std::vector<int> sockets;
  for (const at::Device device : devices) {
    const int node = device.is_cuda() ? socket_of(device) : 0;
    const auto found = std::find(seen.begin(), seen.end(), node);
    sockets.push_back(static_cast<int>(found - seen.begin()));
    if (found == seen.end()) seen.push_back(node);
  }
  return sockets;
}

// Bytes per nanosecond, which is GB/s, of one copy that the host waits for.
double waited_rate(const at::Tensor& to, const at::Tensor& from, int repeats) {
  std::vector<double> rates;
  for (int i = 0; i < repeats; ++i) {
    wait_for(to.device());
    wait_for(from.device());
    const double begin = host_now_ns();
    to.copy_(from);
    wait_for(to.device());
    wait_for(from.device());
    rates.push_back(static_cast<double>(from.nbytes()) / (host_now_ns() - begin));
  }
  return summary_of(std::move(rates)).ns;
}

}  // namespace

void measure_device_facts(const CalibrationTarget& target, CalibrationSamples& samples) {
  samples.device_kind = target.device().is_cuda() ? "cuda" : "cpu";
  samples.sockets = sockets_of(target.devices);
  if (!target.device().is_cuda()) {
    samples.device_name = cpu_name();
    samples.memory_bytes = static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
                           static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    return;
  }
  const cudaDeviceProp& properties = *at::cuda::getDeviceProperties(target.device().index());
  samples.device_name = properties.name;
  samples.cuda = cuda_version();
  samples.compute_capability = properties.major + 0.1 * properties.minor;
  samples.memory_bytes = properties.totalGlobalMem;
}

void measure_copies(const CalibrationTarget& target, CalibrationSamples& samples) {
  const at::NoGradGuard no_grad;
  const CallTimer timer(target.device(), target.quick);
  const at::TensorOptions bytes(at::kByte);
  const at::Tensor pageable = at::ones({kCopyBytes}, bytes);
  const at::Tensor there = at::zeros({kCopyBytes}, bytes.device(target.device()));
  const auto rate = [&](const at::Tensor& to, const at::Tensor& from) {
    const CallTime time = timer.time([&] { to.copy_(from, /*non_blocking=*/true); });
    return static_cast<double>(kCopyBytes) / time.ns;
  };
  if (!target.device().is_cuda()) {
    samples.copies.host_to_device = samples.copies.device_to_host = rate(there, pageable);
    samples.copies.pageable_to_device = samples.copies.host_to_device;
    return;
  }
  const at::Tensor pinned = at::empty({kCopyBytes}, bytes.pinned_memory(true));
  pinned.fill_(1);
  samples.copies.host_to_device = rate(there, pinned);
  samples.copies.device_to_host = rate(pinned, there);
  constexpr int kRepeats = 5;
  samples.copies.pageable_to_device = waited_rate(there, pageable, kRepeats);
}

void measure_peers(const CalibrationTarget& target, CalibrationSamples& samples) {
  if (!target.device().is_cuda()) return;
  const at::NoGradGuard no_grad;
  constexpr int kRepeats = 7;
  for (std::size_t a = 0; a < target.devices.size(); ++a) {
    for (std::size_t b = 0; b < target.devices.size(); ++b) {
      if (a == b) continue;
      const auto on = [&](std::size_t i) {
        const c10::cuda::CUDAGuard guard(target.devices[i]);
        return at::ones({kPeerCopyBytes}, at::TensorOptions(at::kByte).device(target.devices[i]));
      };
      int access = 0;
      (void)cudaDeviceCanAccessPeer(&access, target.devices[a].index(), target.devices[b].index());
      const at::Tensor from = on(a);
      const at::Tensor to = on(b);
      (void)waited_rate(to, from, 2);
      samples.peers.push_back(
          {static_cast<int>(a), static_cast<int>(b), access != 0, waited_rate(to, from, kRepeats)});
      target.heartbeat();
    }
  }
}

void measure_context(const CalibrationTarget& target, CalibrationSamples& samples) {
  if (!target.device().is_cuda()) return;
  const c10::cuda::CUDAGuard guard(target.device());
  wait_for(target.device());
  std::size_t free = 0;
  std::size_t total = 0;
  if (cudaMemGetInfo(&free, &total) != cudaSuccess) {
    samples.notes.emplace_back("memory of the context: cudaMemGetInfo failed");
    return;
  }
  constexpr auto kAll = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);
  const auto stats = c10::cuda::CUDACachingAllocator::getDeviceStats(target.device().index());
  const auto reserved = static_cast<std::size_t>(stats.reserved_bytes[kAll].current);
  samples.memory_bytes = total;
  if (total - free > reserved) samples.context_bytes = total - free - reserved;
}

}  // namespace bench::training
