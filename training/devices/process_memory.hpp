// How a training process takes memory from the system. Called first thing in main().
//
// With malloc's defaults the system had to provide 6,461 fresh pages for a step of ResNet-18 on a
// virtual GPU and 4,636 on `cpu`, which was most of what the virtual GPU cost more: autograd runs
// its backward pass on a thread of its own, whose arena cannot reuse what the forward pass freed.
// One arena halves both; keeping what is freed leaves none (docs/performance.md).
// Gradients of hundreds of megabytes come fresh in every step all the same; in huge pages that is a
// fifteenth of the page faults, and two ranks of the MLP need 13 to 26 % less processor time.
#pragma once

#include <malloc.h>

#include <cstdlib>

namespace bench::training {

inline void set_up_process_memory() {
  constexpr int kArenas = 1;
  // The most that malloc accepts. Larger tensors get pages of their own and give them back.
  constexpr int kOwnPagesFrom = 32 << 20;
  // More than a step of any model here leaves free; bench-worker trims between jobs.
  constexpr int kKeptBytes = 1 << 30;
  ::mallopt(M_ARENA_MAX, kArenas);
  ::mallopt(M_MMAP_THRESHOLD, kOwnPagesFrom);
  ::mallopt(M_TRIM_THRESHOLD, kKeptBytes);
  // PyTorch's own switch for CPU tensors (c10/core/impl/alloc_cpu.cpp); the user's setting stays.
  ::setenv("THP_MEM_ALLOC_ENABLE", "1", /*overwrite=*/0);
}

}  // namespace bench::training
