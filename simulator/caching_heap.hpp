// PyTorch's CUDA caching allocator as a model: what it reserves on the device for a sequence of
// allocations, which is more than the tensors hold. Blocks are rounded to 512 B; requests of up to
// 1 MiB are cut from segments of 2 MiB, up to 10 MiB from segments of 20 MiB, and larger ones get
// segments of their own, rounded to 2 MiB. Freed blocks are kept and joined with free neighbours;
// what is wholly free goes back to the device only when it would otherwise run out.
//
// Constants: c10/cuda/CUDACachingAllocator (kMinBlockSize, kSmallSize, kSmallBuffer, kLargeBuffer,
// kMinLargeAlloc, kRoundLarge) of PyTorch 2.x, default settings.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace bench::simulator {

class CachingHeap {
 public:
  using Block = std::uint32_t;

  explicit CachingHeap(std::uint64_t capacity) : capacity_(capacity) {}

  // nullopt: out of memory, even with every wholly free segment given back.
  std::optional<Block> take(std::uint64_t bytes);
  void give_back(Block block);

  std::uint64_t allocated() const { return allocated_; }
  std::uint64_t reserved() const { return reserved_; }
  std::uint64_t peak_reserved() const { return peak_reserved_; }

 private:
  struct Piece {
    std::uint64_t bytes = 0;
    std::uint64_t requested = 0;
    Block previous = kNoPiece;  // in the same segment
    Block next = kNoPiece;
    bool small = false;  // of a segment for small requests
    bool free = false;
  };
  static constexpr Block kNoPiece = 0xffffffffU;
  using FreeList = std::set<std::pair<std::uint64_t, Block>>;  // best fit first

  FreeList& list_of(const Piece& piece) { return piece.small ? free_small_ : free_large_; }
  void set_free(Block block);
  void unset_free(Block block);
  Block new_piece(Piece piece);
  std::optional<Block> reserve(std::uint64_t bytes, bool small);
  void release_segments();
  void split(Block block, std::uint64_t bytes);
  Block join(Block left, Block right);

  std::uint64_t capacity_;
  std::uint64_t allocated_ = 0;
  std::uint64_t reserved_ = 0;
  std::uint64_t peak_reserved_ = 0;
  std::vector<Piece> pieces_;
  std::vector<Block> unused_;  // entries of pieces_ that stand for nothing any more
  FreeList free_small_;
  FreeList free_large_;
};

}  // namespace bench::simulator
