// probe: what this build links and this machine offers, as facts for `bench doctor`.
#include "training/jobs/job_runner.hpp"

#include <cuda_runtime_api.h>
#include <cupti.h>
#include <nccl.h>
#include <torch/csrc/cuda/nccl.h>
#include <torch/version.h>

#include <thread>

namespace bench::training {
namespace {

// CUDA encodes versions as decimal digits: 13000 is 13.0.
std::string cuda_version(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

// PyTorch packs NCCL's version as 32 + 16 + 16 bits.
std::string nccl_version(std::uint64_t version) {
  return std::to_string(version >> 32) + "." + std::to_string(version >> 16 & 0xFFFF) + "." +
         std::to_string(version & 0xFFFF);
}

void probe_cuda(RankReport& report) {
  int driver = 0;
  const auto status = cudaDriverGetVersion(&driver);
  report.facts["cuda.runtime"] = cuda_version(CUDART_VERSION);
  report.facts["cuda.driver"] = status == cudaSuccess && driver > 0 ? cuda_version(driver) : "none";
  const int count = static_cast<int>(torch::cuda::device_count());
  report.counters["cuda.devices"] = count;
  for (int i = 0; i < count; ++i) {
    cudaDeviceProp properties{};
    if (cudaGetDeviceProperties(&properties, i) != cudaSuccess) continue;
    const std::string key = "cuda.device" + std::to_string(i);
    report.facts[key + ".name"] = properties.name;
    report.facts[key + ".capability"] =
        std::to_string(properties.major) + "." + std::to_string(properties.minor);
    report.counters[key + ".memory_bytes"] = static_cast<double>(properties.totalGlobalMem);
    report.counters[key + ".multiprocessors"] = properties.multiProcessorCount;
  }
}

// Enabling an activity kind is the first CUPTI call that needs a driver.
std::string probe_cupti() {
  const auto status = cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  if (status == CUPTI_SUCCESS) {
    (void)cuptiActivityDisable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    return "available";
  }
  const char* text = nullptr;
  (void)cuptiGetResultString(status, &text);
  return std::string("not available: ") + (text != nullptr ? text : "unknown error");
}

}  // namespace

void run_probe(RankReport& report) {
  report.facts["torch"] = TORCH_VERSION;
  report.facts["gloo"] = "available";
  report.facts["nccl"] = nccl_version(torch::cuda::nccl::version());
  report.facts["cupti"] = probe_cupti();
  report.counters["cpu.threads"] = std::thread::hardware_concurrency();
  probe_cuda(report);
}

}  // namespace bench::training
