// Sets of time as sorted, disjoint, half-open spans: the arithmetic behind "communication runs and
// compute does not". Spans may be added in any order and may overlap; the set is their union.
#pragma once

#include <cstdint>
#include <vector>

namespace bench::profiling {

struct Span {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  bool operator==(const Span&) const = default;
};

class IntervalSet {
 public:
  IntervalSet() = default;
  // Union of `spans`; empty and inverted spans are dropped.
  explicit IntervalSet(std::vector<Span> spans);

  const std::vector<Span>& spans() const { return spans_; }
  bool empty() const { return spans_.empty(); }
  std::int64_t length_ns() const;

  IntervalSet united(const IntervalSet& other) const;
  IntervalSet intersected(const IntervalSet& other) const;
  IntervalSet without(const IntervalSet& other) const;  // this set minus `other`
  IntervalSet clipped(Span window) const;

 private:
  std::vector<Span> spans_;  // sorted, disjoint, no two touching
};

}  // namespace bench::profiling
