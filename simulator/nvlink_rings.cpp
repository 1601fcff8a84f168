#include "simulator/nvlink_rings.hpp"

#include <algorithm>
#include <numeric>

namespace bench::simulator {
namespace {

// A search that has not found a ring after this many steps gives up: the meshes that exist have 16
// GPUs at most and need a few dozen.
constexpr std::int32_t kSearchSteps = 20000;

class RingSearch {
 public:
  RingSearch(const std::vector<NvlinkPair>& pairs, const std::vector<std::int32_t>& gpus)
      : size_(gpus.size()), left_(size_ * size_, 0) {
    for (const NvlinkPair& pair : pairs) {
      const auto a = std::find(gpus.begin(), gpus.end(), pair.a);
      const auto b = std::find(gpus.begin(), gpus.end(), pair.b);
      if (a == gpus.end() || b == gpus.end()) continue;
      const auto from = static_cast<std::size_t>(a - gpus.begin());
      const auto to = static_cast<std::size_t>(b - gpus.begin());
      left_[from * size_ + to] += pair.links;
      left_[to * size_ + from] += pair.links;
    }
  }

  // Takes the links of one ring, or of a ring and its reverse; false when there is none left.
  bool take_ring(bool with_reverse) {
    with_reverse_ = with_reverse;
    ring_.assign(1, 0);
    visited_.assign(size_, false);
    visited_[0] = true;
    steps_ = 0;
    if (!extend()) return false;
    for (std::size_t i = 0; i < size_; ++i) {
      const std::size_t from = ring_[i];
      const std::size_t to = ring_[(i + 1) % size_];
      --links(from, to);
      if (with_reverse) --links(to, from);
    }
    return true;
  }

 private:
  std::int32_t& links(std::size_t from, std::size_t to) { return left_[from * size_ + to]; }

  std::int32_t width(std::size_t from, std::size_t to) {
    const std::int32_t forward = links(from, to);
    return with_reverse_ ? std::min(forward, links(to, from)) : forward;
  }

  bool extend() {
    if (++steps_ > kSearchSteps) return false;
    const std::size_t last = ring_.back();
    if (ring_.size() == size_) return width(last, 0) > 0;
    // The widest way on first: it leaves the narrow ones for later rings.
    std::vector<std::size_t> next;
    for (std::size_t to = 0; to < size_; ++to) {
      if (!visited_[to] && width(last, to) > 0) next.push_back(to);
    }
    std::stable_sort(next.begin(), next.end(),
                     [&](std::size_t a, std::size_t b) { return width(last, a) > width(last, b); });
    for (const std::size_t to : next) {
      visited_[to] = true;
      ring_.push_back(to);
      if (extend()) return true;
      ring_.pop_back();
      visited_[to] = false;
    }
    return false;
  }

  std::size_t size_;
  std::vector<std::int32_t> left_;
  std::vector<std::size_t> ring_;
  std::vector<bool> visited_;
  std::int32_t steps_ = 0;
  bool with_reverse_ = false;
};

}  // namespace

std::int32_t count_nvlink_rings(const std::vector<NvlinkPair>& pairs,
                                const std::vector<std::int32_t>& gpus) {
  if (gpus.size() < 2) return 0;
  RingSearch search(pairs, gpus);
  std::int32_t rings = 0;
  // Pairs of opposite rings first: links work both ways, and what is left over is symmetric.
  while (gpus.size() > 2 && search.take_ring(true)) rings += 2;
  while (search.take_ring(false)) ++rings;
  return rings;
}

}  // namespace bench::simulator
