// The few NVML calls this program needs, resolved at run time from libnvidia-ml.so.1. NVML's C
// interface is stable, so its four types are declared here and no header of NVIDIA is needed.
#pragma once

#include "bench/plan/hardware.hpp"

namespace bench {

// GPUs and driver as NVML reports them, before CUDA_VISIBLE_DEVICES.
Hardware query_nvml();

}  // namespace bench
