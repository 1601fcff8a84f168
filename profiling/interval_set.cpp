#include "profiling/interval_set.hpp"

#include <algorithm>

namespace bench::profiling {

IntervalSet::IntervalSet(std::vector<Span> spans) {
  std::erase_if(spans, [](const Span& s) { return s.end_ns <= s.begin_ns; });
  // Timelines come sorted by stream, so the common case needs no sorting at all.
  const auto by_begin = [](const Span& a, const Span& b) { return a.begin_ns < b.begin_ns; };
  if (!std::is_sorted(spans.begin(), spans.end(), by_begin)) {
    std::sort(spans.begin(), spans.end(), by_begin);
  }
  for (const Span& span : spans) {
    if (!spans_.empty() && span.begin_ns <= spans_.back().end_ns) {
      spans_.back().end_ns = std::max(spans_.back().end_ns, span.end_ns);
    } else {
      spans_.push_back(span);
    }
  }
}

std::int64_t IntervalSet::length_ns() const {
  std::int64_t total = 0;
  for (const Span& span : spans_) total += span.end_ns - span.begin_ns;
  return total;
}

IntervalSet IntervalSet::united(const IntervalSet& other) const {
  std::vector<Span> both;
  both.reserve(spans_.size() + other.spans_.size());
  std::merge(spans_.begin(), spans_.end(), other.spans_.begin(), other.spans_.end(),
             std::back_inserter(both),
             [](const Span& a, const Span& b) { return a.begin_ns < b.begin_ns; });
  return IntervalSet(std::move(both));
}

IntervalSet IntervalSet::intersected(const IntervalSet& other) const {
  IntervalSet result;
  auto a = spans_.begin();
  auto b = other.spans_.begin();
  while (a != spans_.end() && b != other.spans_.end()) {
    const Span common{std::max(a->begin_ns, b->begin_ns), std::min(a->end_ns, b->end_ns)};
    if (common.begin_ns < common.end_ns) result.spans_.push_back(common);
    // The span that ends first cannot meet anything further on the other side.
    if (a->end_ns < b->end_ns) {
      ++a;
    } else {
      ++b;
    }
  }
  return result;
}

IntervalSet IntervalSet::without(const IntervalSet& other) const {
  IntervalSet result;
  auto hole = other.spans_.begin();
  for (Span rest : spans_) {
    while (hole != other.spans_.end() && hole->end_ns <= rest.begin_ns) ++hole;
    for (auto h = hole; h != other.spans_.end() && h->begin_ns < rest.end_ns; ++h) {
      if (h->begin_ns > rest.begin_ns) result.spans_.push_back({rest.begin_ns, h->begin_ns});
      rest.begin_ns = std::min(h->end_ns, rest.end_ns);
    }
    if (rest.begin_ns < rest.end_ns) result.spans_.push_back(rest);
  }
  return result;
}

IntervalSet IntervalSet::clipped(Span window) const { return intersected(IntervalSet({window})); }

}  // namespace bench::profiling
