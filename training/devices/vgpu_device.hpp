// What the parts of the vgpu backend share: the current device of a thread and the parts'
// registration functions, which register_vgpu() calls once.
#pragma once

#include <c10/core/Device.h>

namespace bench::training {

inline constexpr int kMaxDevices = 64;

// Index of the current vgpu device of this thread (as cudaGetDevice).
int current_vgpu_index();

void register_device_guard();  // device_guard.cpp: guard and hooks
void register_kernels();       // vgpu_kernels.cpp: what the fallback cannot do
void register_fallback();      // fallback.cpp: everything else

}  // namespace bench::training
