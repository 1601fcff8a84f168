// The batch as an edit. What an operation computes, reads, writes and allocates is a constant plus
// so much per sample, so two recordings of one step at different batches give it at any other. A
// third, of a much smaller batch, must come out as it was recorded, or there is no such edit: work
// that grows with the square of the batch or takes another way at some size is found there.
#pragma once

#include "simulator/operation_graph.hpp"

#include <array>
#include <optional>

namespace bench::simulator {

// A recording with the samples of one micro-batch on one device.
struct BatchPoint {
  std::int64_t samples = 0;
  const OperationGraph* graph = nullptr;
};

class BatchSeries {
 public:
  // Multiples of 512 samples have allocations that rounding up to 512 B does not change.
  static constexpr std::array<std::int64_t, 3> kSamples{2, 512, 1024};
  // One sample is another program: dimensions of one are broadcast and stand for any layout.
  static constexpr std::int64_t kLeastSamples = 2;

  // nullopt unless the last two explain the first. The recordings must outlive the series.
  static std::optional<BatchSeries> make(const std::array<BatchPoint, 3>& points);

  // The step at `samples`; nullopt below kLeastSamples.
  std::optional<OperationGraph> at(std::int64_t samples) const;

 private:
  BatchSeries(BatchPoint low, BatchPoint high) : low_(low), high_(high) {}
  bool pair_allocations(const OperationGraph& check, std::int64_t samples);

  BatchPoint low_;
  BatchPoint high_;
  std::vector<std::size_t> pairs_;  // of each allocation of `low_`, the same in `high_`
};

}  // namespace bench::simulator
