// Peak memory of the devices of this process, from the allocator that serves them.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <vector>

namespace bench::training {

// Starts a new peak on every device. The CPU's peak is the process's and cannot be restarted.
void reset_peaks(const std::vector<c10::Device>& devices);

// Most bytes allocated on `device` since: what the CUDA caching allocator handed out, a virtual
// GPU's account, or the largest resident set of the process for the CPU.
std::uint64_t peak_memory(c10::Device device);

}  // namespace bench::training
