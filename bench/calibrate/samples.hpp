// What a worker measured on one machine, as it hands it to `bench calibrate`: times of operators
// with what a recording says they do, host costs, copies, memory and collectives. Raw figures only;
// machine_fit.hpp makes a machine of them. LibTorch-free.
#pragma once

#include "simulator/operation_graph.hpp"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace bench {

// One operator call. The first part is the operation as virtual GPUs record it, so that the fit
// explains exactly what a prediction will be made from.
struct OperationSample {
  std::string name;   // "aten::convolution"
  std::string shape;  // "[32,64,56,56]x[64,64,3,3]"
  simulator::DType dtype = simulator::DType::float32;
  double flops = 0;
  std::uint64_t bytes_read = 0;
  std::uint64_t bytes_written = 0;
  int launches = 1;
  double ns = 0;      // median time on the device
  double spread = 0;  // of the samples: (90th - 10th percentile) / median

  simulator::Operation operation() const;
  double bytes() const { return static_cast<double>(bytes_read) + bytes_written; }
};

// CPU time of issuing one small operator while the device has nothing to do; 0 = not measured.
struct HostSamples {
  double forward_ns = 0;
  double backward_ns = 0;     // from an autograd thread
  double convolution_ns = 0;  // what a convolution takes more than another operator
};

// GB/s of large copies; 0 = not measured.
struct CopySamples {
  double host_to_device = 0;  // pinned memory
  double device_to_host = 0;
  double pageable_to_device = 0;
};

// Between two of the devices; indices into the --gpus list.
struct PeerSample {
  int from = 0;
  int to = 0;
  bool peer_access = false;
  double gb_per_s = 0;
};

struct CalibrationSamples {
  std::string device_kind;  // "cuda" or "cpu"
  std::string device_name;
  std::string driver;  // empty on a CPU
  std::string cuda;
  std::string torch;
  double compute_capability = 0;  // 0 on a CPU
  std::uint64_t memory_bytes = 0;
  std::uint64_t context_bytes = 0;  // beside the allocator, after everything else was measured
  double launch_ns = 0;             // least time a kernel occupies its stream
  HostSamples host;
  CopySamples copies;
  std::vector<OperationSample> operations;
  std::vector<int> sockets;  // of every device
  std::vector<PeerSample> peers;
  // Bytes per rank and nanoseconds over all devices.
  std::vector<std::pair<double, double>> all_reduce;
  std::vector<std::string> notes;  // what could not be measured, and why
};

std::string samples_to_json(const CalibrationSamples& samples);
// Throws UsageError on anything that is not such a document.
CalibrationSamples samples_from_json(const std::string& text);

// Read and written where worker and parent meet. Throw UsageError and MachineError.
CalibrationSamples read_samples(const std::string& path);
void write_samples(const CalibrationSamples& samples, const std::string& path);

}  // namespace bench
