#include "training/data/untouched_tensor.hpp"

#include <sys/mman.h>

#include <cstddef>

namespace bench::training {
namespace {

std::size_t byte_count(const std::vector<std::int64_t>& sizes, torch::Dtype dtype) {
  std::size_t bytes = torch::elementSize(dtype);
  for (const std::int64_t size : sizes)
    TORCH_CHECK(!__builtin_mul_overflow(bytes, static_cast<std::size_t>(size), &bytes),
                "a batch of ", sizes.front(), " samples has more bytes than 64 bits can count");
  return bytes;
}

}  // namespace

torch::Tensor untouched_zeros(const std::vector<std::int64_t>& sizes, torch::Dtype dtype) {
  const std::size_t bytes = byte_count(sizes, dtype);
  if (bytes == 0) return torch::empty(sizes, dtype);
  // Not reserved: otherwise the kernel refuses what is larger than memory and swap.
  void* pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  TORCH_CHECK(pages != MAP_FAILED, "a batch of ", sizes.front(), " samples needs ", bytes,
              " bytes, more than this machine can address");
  return torch::from_blob(
      pages, sizes, [bytes](void* first) { munmap(first, bytes); }, torch::dtype(dtype));
}

}  // namespace bench::training
