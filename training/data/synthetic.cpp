#include "training/data/synthetic.hpp"

#include "training/data/untouched_tensor.hpp"

#include <ATen/CPUGeneratorImpl.h>

namespace bench::training {
namespace {

// Keeps the stream of samples apart from the one that initialises parameters with the same seed.
constexpr std::uint64_t kSampleStream = 0x73616D706C657300;

// SplitMix64 (Steele, Lea, Flood 2014): neighbouring inputs give unrelated outputs.
std::uint64_t scrambled(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

std::uint64_t sample_seed(std::uint64_t seed, std::int64_t index, std::int64_t sample) {
  const std::uint64_t step = scrambled(seed ^ kSampleStream) + static_cast<std::uint64_t>(index);
  return scrambled(scrambled(step) + static_cast<std::uint64_t>(sample));
}

class SyntheticSource : public BatchSource {
 public:
  SyntheticSource(const BatchShape& shape, BatchOptions options)
      : shape_(shape), options_(std::move(options)) {
    if (options_.fresh) return;
    for (std::size_t i = 0; i < options_.micro_batches.size(); ++i) resident_.push_back(draw(i));
  }

  Batch next() override {
    const std::int64_t index = next_++;
    if (options_.fresh) return draw(index);
    return resident_[static_cast<std::size_t>(index) % resident_.size()];
  }

 private:
  Batch draw(std::int64_t index) const {
    const auto& sizes = options_.micro_batches;
    const std::int64_t batch = sizes[static_cast<std::size_t>(index) % sizes.size()];
    const Slice slice = rank_slice(batch, options_.rank, options_.world_size);
    const Batch host = draw_synthetic(shape_, options_.seed, index, slice, options_.values);
    return {options_.place(host.input), options_.place(host.target)};
  }

  BatchShape shape_;
  BatchOptions options_;
  std::vector<Batch> resident_;
  std::int64_t next_ = 0;
};

}  // namespace

Batch draw_synthetic(const BatchShape& shape, std::uint64_t seed, std::int64_t index, Slice slice,
                     bool values) {
  if (!values)
    return {untouched_zeros(batch_sizes(slice.count, shape.input), shape.input_dtype),
            untouched_zeros(batch_sizes(slice.count, shape.target), shape.target_dtype())};
  Batch batch{shape.empty_input(slice.count), shape.empty_target(slice.count)};
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>();
  for (std::int64_t i = 0; i < slice.count; ++i) {
    generator.set_current_seed(sample_seed(seed, index, slice.begin + i));
    if (shape.loss_kind == LossKind::mse) {
      batch.target[i].normal_(0, 1, generator);
    } else {
      batch.target[i].random_(0, shape.target_classes, generator);
    }
    if (shape.input_dtype == torch::kInt64) {
      batch.input[i].random_(0, shape.token_count, generator);
    } else {
      batch.input[i].normal_(0, 1, generator);
    }
  }
  return batch;
}

std::unique_ptr<BatchSource> make_synthetic_source(const BatchShape& shape, BatchOptions options) {
  return std::make_unique<SyntheticSource>(shape, std::move(options));
}

}  // namespace bench::training
