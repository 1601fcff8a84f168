# Imported targets for LibTorch and the NVIDIA libraries that the torch wheel brings.
# TorchConfig.cmake is not used: it enables the CUDA language and so needs nvcc.
file(GLOB BENCH_SITE_PACKAGES "${BENCH_PYTHON_ENV}/lib/python3*/site-packages")
if(NOT EXISTS "${BENCH_SITE_PACKAGES}/torch/lib/libtorch_cpu.so")
  message(FATAL_ERROR "no torch wheel under ${BENCH_PYTHON_ENV}: run scripts/setup, or set BENCH_PYTHON_ENV")
endif()
find_path(GLOO_INCLUDE gloo/algorithm.h REQUIRED)  # libgloo-dev, headers only

set(TORCH_HOME ${BENCH_SITE_PACKAGES}/torch)
set(CUDA_HOME ${BENCH_SITE_PACKAGES}/nvidia/cu13)
set(NCCL_HOME ${BENCH_SITE_PACKAGES}/nvidia/nccl)

add_library(bench_torch INTERFACE)
target_include_directories(bench_torch SYSTEM INTERFACE
  ${TORCH_HOME}/include ${TORCH_HOME}/include/torch/csrc/api/include
  ${CUDA_HOME}/include ${NCCL_HOME}/include ${GLOO_INCLUDE})
target_compile_definitions(bench_torch INTERFACE USE_DISTRIBUTED USE_C10D_GLOO USE_C10D_NCCL)
target_link_options(bench_torch INTERFACE -Wl,--no-as-needed
  -Wl,-rpath,${TORCH_HOME}/lib -Wl,-rpath,${CUDA_HOME}/lib -Wl,-rpath,${NCCL_HOME}/lib)
# libstdc++ comes first: libtorch.so exports an incomplete std::filesystem of its own, whose
# remove_all() calls a null pointer.
target_link_libraries(bench_torch INTERFACE stdc++
  ${TORCH_HOME}/lib/libtorch.so ${TORCH_HOME}/lib/libtorch_cpu.so ${TORCH_HOME}/lib/libtorch_cuda.so
  ${TORCH_HOME}/lib/libc10.so ${TORCH_HOME}/lib/libc10_cuda.so
  ${CUDA_HOME}/lib/libcudart.so.13 ${CUDA_HOME}/lib/libcupti.so.13 Threads::Threads)
