#include "simulator/batch_edit.hpp"

#include "simulator/allocation_order.hpp"
#include "simulator/graph_io.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <numeric>
#include <string_view>
#include <tuple>

namespace bench::simulator {
namespace {

constexpr std::uint64_t kAllocationGranularity = 512;
// Allocations that are alike but for their size, as many as are tried in every order.
constexpr std::size_t kMostOrders = 6;

// A line through two recorded values, met at whole numbers only.
class Line {
 public:
  Line(const BatchPoint& low, const BatchPoint& high, std::int64_t samples)
      : step_(high.samples - low.samples), distance_(samples - low.samples) {}

  template <class Number>
  Number through(Number low, Number high) {
    if (low == high) return low;
    const auto from = static_cast<std::int64_t>(low);
    const std::int64_t rise = static_cast<std::int64_t>(high) - from;
    if (rise % step_ != 0) whole_ = false;
    const std::int64_t value = from + rise / step_ * distance_;
    if (value < 0) whole_ = false;
    return static_cast<Number>(value);
  }

  bool whole() const { return whole_; }

 private:
  std::int64_t step_;
  std::int64_t distance_;
  bool whole_ = true;
};

std::uint64_t rounded_up(std::uint64_t bytes) {
  return (bytes + kAllocationGranularity - 1) / kAllocationGranularity * kAllocationGranularity;
}

std::uint64_t bytes_at(const Allocation& low, const Allocation& high, Line& line) {
  return rounded_up(line.through(low.bytes, high.bytes));
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::int64_t number_at(std::string_view text, std::size_t& at) {
  std::int64_t value = 0;
  const auto end = std::from_chars(text.data() + at, text.data() + text.size(), value).ptr;
  at = static_cast<std::size_t>(end - text.data());
  return value;
}

// "[512,64]x[64,10]" and "[1024,64]x[64,10]" at 32 samples are "[32,64]x[64,10]".
std::optional<std::string> text_at(std::string_view low, std::string_view high, Line& line) {
  std::string text;
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < low.size() && j < high.size()) {
    if (is_digit(low[i]) && is_digit(high[j])) {
      const std::int64_t value = number_at(low, i);
      text += std::to_string(line.through(value, number_at(high, j)));
    } else if (low[i++] == high[j++]) {
      text += low[i - 1];
    } else {
      return std::nullopt;
    }
  }
  if (i != low.size() || j != high.size()) return std::nullopt;
  return text;
}

auto fixed_parts(const Operation& op) {
  return std::tie(op.kind, op.collective, op.phase, op.dtype, op.device, op.stream, op.peer,
                  op.host_thread, op.group, op.root, op.across_ranks, op.blocking, op.launches,
                  op.device_deps, op.issue_deps);
}

// Numbers texts as they are first used, as the recorder does.
class Names {
 public:
  explicit Names(std::vector<std::string>& names) : names_(names) { names_.assign(1, ""); }

  std::uint32_t number(const std::string& text) {
    if (text.empty()) return 0;
    const auto next = static_cast<std::uint32_t>(names_.size());
    const auto [found, fresh] = numbers_.try_emplace(text, next);
    if (fresh) names_.push_back(text);
    return found->second;
  }

 private:
  std::vector<std::string>& names_;
  std::map<std::string, std::uint32_t> numbers_;
};

// Both recordings have the same operations; only amounts and shapes differ.
class Operations {
 public:
  Operations(const BatchPoint& low, const BatchPoint& high, std::int64_t samples,
             OperationGraph& out)
      : low_(*low.graph), high_(*high.graph), line_(low, high, samples), out_(out) {}

  bool write() {
    if (low_.operations.size() != high_.operations.size()) return false;
    Names names(out_.names);
    out_.operations = low_.operations;
    for (std::size_t i = 0; i < out_.operations.size(); ++i) {
      const Operation& low = low_.operations[i];
      const Operation& high = high_.operations[i];
      if (fixed_parts(low) != fixed_parts(high)) return false;
      if (low_.names[low.name] != high_.names[high.name]) return false;
      const std::string* shape = shape_of(low.shape, high.shape);
      if (shape == nullptr) return false;
      scale(low, high, out_.operations[i]);
      out_.operations[i].name = names.number(low_.names[low.name]);
      out_.operations[i].shape = names.number(*shape);
    }
    return line_.whole();
  }

 private:
  void scale(const Operation& low, const Operation& high, Operation& op) {
    op.flops = line_.through(low.flops, high.flops);
    op.bytes_read = line_.through(low.bytes_read, high.bytes_read);
    op.bytes_written = line_.through(low.bytes_written, high.bytes_written);
    op.bytes_moved = line_.through(low.bytes_moved, high.bytes_moved);
    op.host_items = line_.through(low.host_items, high.host_items);
  }

  const std::string* shape_of(std::uint32_t low, std::uint32_t high) {
    const auto [found, fresh] = shapes_.try_emplace({low, high});
    if (fresh) found->second = text_at(low_.names[low], high_.names[high], line_);
    return found->second ? &*found->second : nullptr;
  }

  const OperationGraph& low_;
  const OperationGraph& high_;
  Line line_;
  OperationGraph& out_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::optional<std::string>> shapes_;
};

bool alike(const Allocation& a, const Allocation& b) {
  return std::tie(a.alloc_op, a.free_op, a.device, a.category) ==
         std::tie(b.alloc_op, b.free_op, b.device, b.category);
}

// Allocations of one operation, freed by one operation: sizes that do not depend on the batch lie
// among others that do, at another place in each recording.
std::size_t end_of_run(const std::vector<Allocation>& all, std::size_t begin) {
  std::size_t end = begin + 1;
  while (end < all.size() && alike(all[begin], all[end])) ++end;
  return end;
}

}  // namespace

std::optional<OperationGraph> BatchSeries::at(std::int64_t samples) const {
  if (samples < kLeastSamples) return std::nullopt;
  OperationGraph graph = *low_.graph;
  Line line(low_, high_, samples);
  graph.global_batch = line.through(low_.graph->global_batch, high_.graph->global_batch);
  if (!Operations(low_, high_, samples, graph).write()) return std::nullopt;
  for (std::size_t i = 0; i < pairs_.size(); ++i) {
    graph.allocations[i].bytes =
        bytes_at(low_.graph->allocations[i], high_.graph->allocations[pairs_[i]], line);
  }
  if (!line.whole()) return std::nullopt;
  sort_allocations(graph.allocations);
  return graph;
}

bool BatchSeries::pair_allocations(const OperationGraph& check, std::int64_t samples) {
  const auto& low = low_.graph->allocations;
  const auto& high = high_.graph->allocations;
  if (low.size() != high.size() || low.size() != check.allocations.size()) return false;
  pairs_.resize(low.size());
  std::iota(pairs_.begin(), pairs_.end(), std::size_t{0});
  for (std::size_t begin = 0; begin < low.size();) {
    const std::size_t end = end_of_run(low, begin);
    const auto explains = [&] {
      Line line(low_, high_, samples);
      std::vector<std::uint64_t> found;
      std::vector<std::uint64_t> recorded;
      for (std::size_t i = begin; i < end; ++i) {
        if (!alike(low[i], high[pairs_[i]]) || !alike(low[i], check.allocations[i])) return false;
        found.push_back(bytes_at(low[i], high[pairs_[i]], line));
        recorded.push_back(check.allocations[i].bytes);
      }
      std::sort(found.begin(), found.end());
      return line.whole() && found == recorded;
    };
    const auto first = pairs_.begin() + static_cast<std::ptrdiff_t>(begin);
    const auto last = pairs_.begin() + static_cast<std::ptrdiff_t>(end);
    while (!explains()) {
      if (end - begin > kMostOrders || !std::next_permutation(first, last)) return false;
    }
    begin = end;
  }
  return true;
}

std::optional<BatchSeries> BatchSeries::make(const std::array<BatchPoint, 3>& points) {
  const auto& [check, low, high] = points;
  BatchSeries series(low, high);
  if (!series.pair_allocations(*check.graph, check.samples)) return std::nullopt;
  const auto found = series.at(check.samples);
  if (!found || encode_graph(*found) != encode_graph(*check.graph)) return std::nullopt;
  return series;
}

}  // namespace bench::simulator
