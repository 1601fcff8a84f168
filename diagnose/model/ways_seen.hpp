// The steps that one walk to where a value comes from has made. Most walks make one or two, and
// there are many walks: the first steps stand in a list, and a flat table takes over from there.
#pragma once

#include "diagnose/model/module.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace bench::diagnose {

// An expression that was followed, for that element of its value and on the way from that call.
struct Way {
  Ref at;
  int element = -1;
  const Call* from = nullptr;
  bool operator==(const Way&) const = default;
};

class WaysSeen {
 public:
  // False where the way is there already.
  bool insert(const Way& way) {
    if (slots_.empty()) {
      const auto end = first_.begin() + static_cast<std::ptrdiff_t>(count_);
      if (std::find(first_.begin(), end, way) != end) return false;
      if (count_ < first_.size()) {
        first_[count_++] = way;
        return true;
      }
    }
    if (2 * (count_ + 1) > slots_.size()) grow();
    Way& slot = slot_of(way);
    if (slot.at.module != nullptr) return false;
    slot = way;
    ++count_;
    return true;
  }

 private:
  static constexpr std::size_t kFirstSlots = 16;

  static std::size_t hash(const Way& way) {
    constexpr std::uint64_t kSpread = 0x9E3779B97F4A7C15U;  // of neighbours over the table
    constexpr int kHighBits = 32;
    const std::uint64_t mixed = std::hash<const void*>{}(way.at.module) + way.at.node +
                                3 * static_cast<std::uint64_t>(way.element) +
                                std::hash<const void*>{}(way.from);
    return static_cast<std::size_t>((mixed * kSpread) >> kHighBits);
  }

  // Where the way is, or a free place for it.
  Way& slot_of(const Way& way) {
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = hash(way) & mask;
    while (slots_[at].at.module != nullptr && !(slots_[at] == way)) at = (at + 1) & mask;
    return slots_[at];
  }

  void grow() {
    std::vector<Way> old = std::exchange(slots_, {});
    slots_.resize(old.empty() ? kFirstSlots : 2 * old.size());
    if (old.empty()) old.assign(first_.begin(), first_.end());
    for (const Way& way : old)
      if (way.at.module != nullptr) slot_of(way) = way;
  }

  std::array<Way, 4> first_;
  std::vector<Way> slots_;  // a power of two, at most half of them taken
  std::size_t count_ = 0;
};

}  // namespace bench::diagnose
