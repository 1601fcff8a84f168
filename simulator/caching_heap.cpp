#include "simulator/caching_heap.hpp"

#include <algorithm>

namespace bench::simulator {
namespace {

constexpr std::uint64_t kKiB = 1024;
constexpr std::uint64_t kMiB = 1024 * kKiB;
constexpr std::uint64_t kLeastBlock = 512;
constexpr std::uint64_t kSmallRequest = 1 * kMiB;
constexpr std::uint64_t kSmallSegment = 2 * kMiB;
constexpr std::uint64_t kLargeRequest = 10 * kMiB;
constexpr std::uint64_t kLargeSegment = 20 * kMiB;
constexpr std::uint64_t kSegmentStep = 2 * kMiB;

std::uint64_t rounded_up(std::uint64_t bytes, std::uint64_t step) {
  return (bytes + step - 1) / step * step;
}

std::uint64_t segment_bytes(std::uint64_t block) {
  if (block <= kSmallRequest) return kSmallSegment;
  return block < kLargeRequest ? kLargeSegment : rounded_up(block, kSegmentStep);
}

}  // namespace

CachingHeap::Block CachingHeap::new_piece(Piece piece) {
  if (unused_.empty()) {
    pieces_.push_back(piece);
    return static_cast<Block>(pieces_.size() - 1);
  }
  const Block block = unused_.back();
  unused_.pop_back();
  pieces_[block] = piece;
  return block;
}

void CachingHeap::set_free(Block block) {
  pieces_[block].free = true;
  list_of(pieces_[block]).emplace(pieces_[block].bytes, block);
}

void CachingHeap::unset_free(Block block) {
  list_of(pieces_[block]).erase({pieces_[block].bytes, block});
  pieces_[block].free = false;
}

std::optional<CachingHeap::Block> CachingHeap::reserve(std::uint64_t bytes, bool small) {
  const std::uint64_t segment = segment_bytes(bytes);
  if (reserved_ + segment > capacity_) release_segments();
  if (reserved_ + segment > capacity_) return std::nullopt;
  reserved_ += segment;
  peak_reserved_ = std::max(peak_reserved_, reserved_);
  Piece piece;
  piece.bytes = segment;
  piece.small = small;
  const Block block = new_piece(piece);
  set_free(block);
  return block;
}

void CachingHeap::release_segments() {
  for (FreeList* list : {&free_small_, &free_large_}) {
    for (auto at = list->begin(); at != list->end();) {
      const Piece& piece = pieces_[at->second];
      const bool whole = piece.previous == kNoPiece && piece.next == kNoPiece;
      if (!whole) {
        ++at;
        continue;
      }
      reserved_ -= piece.bytes;
      unused_.push_back(at->second);
      at = list->erase(at);
    }
  }
}

void CachingHeap::split(Block block, std::uint64_t bytes) {
  const std::uint64_t rest = pieces_[block].bytes - bytes;
  const bool worth = pieces_[block].small ? rest >= kLeastBlock : rest > kSmallRequest;
  if (!worth) return;
  Piece right;
  right.bytes = rest;
  right.small = pieces_[block].small;
  right.previous = block;
  right.next = pieces_[block].next;
  const Block added = new_piece(right);
  if (right.next != kNoPiece) pieces_[right.next].previous = added;
  pieces_[block].next = added;
  pieces_[block].bytes = bytes;
  set_free(added);
}

std::optional<CachingHeap::Block> CachingHeap::take(std::uint64_t bytes) {
  const std::uint64_t rounded = std::max(rounded_up(bytes, kLeastBlock), kLeastBlock);
  const bool small = rounded <= kSmallRequest;
  FreeList& list = small ? free_small_ : free_large_;
  const auto fit = list.lower_bound({rounded, 0});
  std::optional<Block> block;
  if (fit != list.end()) block = fit->second;
  if (!block) block = reserve(rounded, small);
  if (!block) return std::nullopt;
  unset_free(*block);
  split(*block, rounded);
  pieces_[*block].requested = rounded;
  allocated_ += rounded;
  return block;
}

CachingHeap::Block CachingHeap::join(Block left, Block right) {
  pieces_[left].bytes += pieces_[right].bytes;
  pieces_[left].next = pieces_[right].next;
  if (pieces_[left].next != kNoPiece) pieces_[pieces_[left].next].previous = left;
  unused_.push_back(right);
  return left;
}

void CachingHeap::give_back(Block block) {
  allocated_ -= pieces_[block].requested;
  const Block next = pieces_[block].next;
  if (next != kNoPiece && pieces_[next].free) {
    unset_free(next);
    join(block, next);
  }
  const Block previous = pieces_[block].previous;
  if (previous != kNoPiece && pieces_[previous].free) {
    unset_free(previous);
    block = join(previous, block);
  }
  set_free(block);
}

}  // namespace bench::simulator
