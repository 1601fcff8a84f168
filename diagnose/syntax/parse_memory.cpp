#include "diagnose/syntax/parse_memory.hpp"

#include <tree_sitter/api.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <vector>

// GCC defines a macro, Clang answers a question.
#if defined(__SANITIZE_ADDRESS__)
#define BENCH_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define BENCH_ADDRESS_SANITIZER 1
#endif
#endif

namespace bench::diagnose {
namespace {

constexpr std::size_t kAlignment = 16;
constexpr std::size_t kLargestSmall = 1024;  // what is larger goes to malloc
constexpr std::size_t kChunkBytes = 1U << 18;
constexpr std::size_t kMostChunks = 256;  // 64 MiB a thread; a file that needs more uses malloc

// In front of every block.
struct alignas(kAlignment) Header {
  std::size_t bytes;  // that a caller may use
  bool small;         // from a chunk, not from malloc
};

struct FreeBlock {
  FreeBlock* next;
};

// The small blocks of one thread. tree-sitter's parsers and trees stay on the thread that made
// them, so that no block is freed elsewhere.
class SmallBlocks {
 public:
  // Null when the thread's chunks are used up.
  void* take(std::size_t bytes) {
    const std::size_t index = (bytes + kAlignment - 1) / kAlignment;
    if (FreeBlock* block = free_[index]) {
      free_[index] = block->next;
      return block;
    }
    const std::size_t usable = index * kAlignment;
    const std::size_t needed = usable + sizeof(Header);
    if (needed > left_) {
      if (chunks_.size() == kMostChunks) return nullptr;
      add_chunk();
    }
    auto* header = reinterpret_cast<Header*>(next_);
    *header = {usable, true};
    next_ += needed;
    left_ -= needed;
    return header + 1;
  }

  void give_back(void* block, std::size_t bytes) {
    auto* freed = static_cast<FreeBlock*>(block);
    FreeBlock*& first = free_[bytes / kAlignment];
    freed->next = first;
    first = freed;
  }

 private:
  struct Free {
    void operator()(std::byte* chunk) const { std::free(chunk); }
  };

  void add_chunk() {
    auto* chunk = static_cast<std::byte*>(std::aligned_alloc(kAlignment, kChunkBytes));
    if (chunk == nullptr) std::abort();  // as tree-sitter does itself
    chunks_.emplace_back(chunk);
    next_ = chunk;
    left_ = kChunkBytes;
  }

  std::array<FreeBlock*, kLargestSmall / kAlignment + 1> free_{};
  std::vector<std::unique_ptr<std::byte, Free>> chunks_;
  std::byte* next_ = nullptr;
  std::size_t left_ = 0;
};

// Never destroyed before the thread's parser, which is made after it and frees into it.
SmallBlocks& small_blocks() {
  thread_local SmallBlocks blocks;
  return blocks;
}

Header* header_of(void* block) { return static_cast<Header*>(block) - 1; }

void* allocate(std::size_t bytes) {
  bytes = std::max<std::size_t>(bytes, 1);
  if (bytes <= kLargestSmall)
    if (void* block = small_blocks().take(bytes)) return block;
  auto* header = static_cast<Header*>(std::malloc(bytes + sizeof(Header)));
  if (header == nullptr) std::abort();
  *header = {bytes, false};
  return header + 1;
}

void* allocate_zeros(std::size_t count, std::size_t size) {
  if (size != 0 && count > std::numeric_limits<std::size_t>::max() / size) std::abort();
  void* block = allocate(count * size);
  std::memset(block, 0, count * size);
  return block;
}

void release(void* block) {
  if (block == nullptr) return;
  Header* header = header_of(block);
  if (header->small) {
    small_blocks().give_back(block, header->bytes);
  } else {
    std::free(header);
  }
}

void* reallocate(void* block, std::size_t bytes) {
  if (block == nullptr) return allocate(bytes);
  Header* header = header_of(block);
  const std::size_t old = header->bytes;
  if (header->small && bytes <= old) return block;
  if (!header->small) {
    auto* moved = static_cast<Header*>(std::realloc(header, bytes + sizeof(Header)));
    if (moved == nullptr) std::abort();
    moved->bytes = bytes;
    return moved + 1;
  }
  void* moved = allocate(bytes);
  std::memcpy(moved, block, std::min(old, bytes));
  release(block);
  return moved;
}

}  // namespace

void use_parse_memory() {
  // With a sanitizer every block keeps an allocation of its own, so that misuse is seen.
#if !defined(BENCH_ADDRESS_SANITIZER)
  static const bool done = [] {
    ts_set_allocator(allocate, allocate_zeros, reallocate, release);
    return true;
  }();
  static_cast<void>(done);
#endif
}

}  // namespace bench::diagnose
