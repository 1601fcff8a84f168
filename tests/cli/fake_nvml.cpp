// A libnvidia-ml.so.1 with four GPUs, of which 0 and 2 are in use: what --gpus and doctor see on a
// machine that has GPUs. Found through LD_LIBRARY_PATH.
#include <cstdint>
#include <cstdio>
#include <cstring>

namespace {

constexpr unsigned kGpus = 4;
constexpr unsigned long long kGiB = 1ull << 30;
constexpr unsigned long long kUsed[kGpus] = {70 * kGiB, 0, 30 * kGiB, 1 * kGiB};

std::uintptr_t index_of(void* device) { return reinterpret_cast<std::uintptr_t>(device) - 1; }

}  // namespace

extern "C" {

struct FakeMemory {
  unsigned long long total, free, used;
};
struct FakeUtilization {
  unsigned int gpu, memory;
};

int nvmlInit_v2() { return 0; }
int nvmlShutdown() { return 0; }
const char* nvmlErrorString(int) { return "made-up error"; }
int nvmlSystemGetDriverVersion(char* text, unsigned size) {
  std::snprintf(text, size, "999.1");
  return 0;
}
int nvmlSystemGetCudaDriverVersion_v2(int* version) {
  *version = 13000;
  return 0;
}
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = kGpus;
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  *device = reinterpret_cast<void*>(static_cast<std::uintptr_t>(index) + 1);
  return 0;
}
int nvmlDeviceGetName(void*, char* text, unsigned size) {
  std::snprintf(text, size, "Fake GPU");
  return 0;
}
int nvmlDeviceGetUUID(void* device, char* text, unsigned size) {
  std::snprintf(text, size, "GPU-%u", static_cast<unsigned>(index_of(device)));
  return 0;
}
int nvmlDeviceGetMemoryInfo(void* device, FakeMemory* memory) {
  const auto used = kUsed[index_of(device)];
  *memory = {80 * kGiB, 80 * kGiB - used, used};
  return 0;
}
int nvmlDeviceGetUtilizationRates(void*, FakeUtilization* utilization) {
  *utilization = {5, 1};
  return 0;
}

}  // extern "C"
