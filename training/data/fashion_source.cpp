#include "training/data/fashion_source.hpp"

#include "bench/core/error.hpp"

#include "training/data/distributed_sampler.hpp"
#include "training/data/fashion_mnist.hpp"
#include "training/data/prefetcher.hpp"

#include <algorithm>
#include <functional>
#include <mutex>
#include <numeric>

namespace bench::training {
namespace {

// Each worker has one batch in the making and one ready, PyTorch's prefetch_factor of 2.
constexpr int kBatchesPerWorker = 2;

void check_fits(const BatchShape& shape) {
  if (shape.input_dtype != torch::kFloat32) {
    throw UsageError("--data fashion_mnist: the model takes token ids; expected float32 input");
  }
  const std::int64_t outputs = shape.loss_kind == LossKind::mse
                                   ? std::accumulate(shape.target.begin(), shape.target.end(),
                                                     std::int64_t{1}, std::multiplies<>())
                                   : shape.target_classes;
  const bool one_class = shape.loss_kind == LossKind::mse || shape.target.empty();
  if (!one_class || outputs < kFashionClasses) {
    throw UsageError(
        "--data fashion_mnist: its ten classes do not fit the model's output; "
        "expected at least 10 classes or values for each sample");
  }
}

// Which images make up micro-batch i. Every rank walks its own DistributedSampler; the global
// batch is the ranks' batches one after the other. A tail too short for a batch is dropped.
class FashionOrder {
 public:
  FashionOrder(std::int64_t length, const BatchOptions& options) : options_(options) {
    sampler_.length = length;
    sampler_.world_size = options.world_size;
    sampler_.seed = options.seed;
    // Rank 0 takes the most of a batch, so its samples bound an epoch.
    const std::int64_t samples = DistributedSampler(sampler_).size();
    step_samples_ = consumed(0, options.micro_batches.size());
    steps_per_epoch_ = step_samples_ > 0 ? samples / step_samples_ : 0;
    if (steps_per_epoch_ == 0) {
      throw UsageError("--batch: a step takes more samples than Fashion-MNIST's " +
                       std::to_string(length));
    }
  }

  std::vector<std::int64_t> images(std::int64_t index) {
    const auto parts = static_cast<std::int64_t>(options_.micro_batches.size());
    const std::int64_t step = index / parts;
    const auto part = static_cast<std::size_t>(index % parts);
    const bool all = options_.rank == kAllRanks;
    std::vector<std::int64_t> chosen;
    for (int rank = all ? 0 : options_.rank; rank < (all ? options_.world_size : options_.rank + 1);
         ++rank) {
      const auto order = epoch_order(rank, step / steps_per_epoch_);
      const std::int64_t own = consumed(rank, options_.micro_batches.size());
      const std::int64_t begin = step % steps_per_epoch_ * own + consumed(rank, part);
      const std::int64_t count =
          rank_slice(options_.micro_batches[part], rank, options_.world_size).count;
      chosen.insert(chosen.end(), order->begin() + begin, order->begin() + begin + count);
    }
    return chosen;
  }

 private:
  using Order = std::shared_ptr<const std::vector<std::int64_t>>;

  // Samples that `rank` takes from the first `parts` micro-batches of a step.
  std::int64_t consumed(int rank, std::size_t parts) const {
    std::int64_t samples = 0;
    for (std::size_t i = 0; i < parts; ++i) {
      samples += rank_slice(options_.micro_batches[i], rank, options_.world_size).count;
    }
    return samples;
  }

  // Shuffled once per epoch and rank; loader threads may still ask for the epoch before.
  Order epoch_order(int rank, std::int64_t epoch) {
    const std::lock_guard lock(mutex_);
    for (const Shuffled& known : shuffled_) {
      if (known.rank == rank && known.epoch == epoch) return known.order;
    }
    DistributedSamplerOptions own = sampler_;
    own.rank = rank;
    DistributedSampler sampler(own);
    sampler.set_epoch(static_cast<std::uint64_t>(epoch));
    auto order = std::make_shared<const std::vector<std::int64_t>>(sampler.indices());
    std::erase_if(shuffled_, [&](const Shuffled& known) {
      return known.rank == rank && known.epoch + 1 < epoch;
    });
    shuffled_.push_back({rank, epoch, order});
    return order;
  }

  struct Shuffled {
    int rank;
    std::int64_t epoch;
    Order order;
  };
  BatchOptions options_;
  DistributedSamplerOptions sampler_;
  std::int64_t step_samples_ = 0;
  std::int64_t steps_per_epoch_ = 0;
  std::mutex mutex_;
  std::vector<Shuffled> shuffled_;
};

class FashionSource : public BatchSource {
 public:
  FashionSource(const BatchShape& shape, const BatchOptions& options)
      : shape_(shape),
        options_(options),
        shaper_(shape.input),
        data_(options.directory),
        order_(data_.size(), options),
        prefetcher_([this](std::int64_t index) { return load(index); }, options.workers,
                    options.workers * kBatchesPerWorker) {}

  Batch next() override {
    const Batch host = prefetcher_.next();
    return {options_.place(host.input), options_.place(host.target)};
  }

 private:
  Batch load(std::int64_t index) {
    const std::vector<std::int64_t> images = order_.images(index);
    const auto count = static_cast<std::int64_t>(images.size());
    Batch batch{shape_.empty_input(count, options_.pinned),
                shape_.empty_target(count, options_.pinned)};
    if (options_.values) fill_inputs(images, batch.input);
    if (shape_.loss_kind == LossKind::cross_entropy) {
      auto* target = batch.target.mutable_data_ptr<std::int64_t>();
      for (const std::int64_t image : images) *target++ = data_.label(image);
    } else if (options_.values) {
      fill_one_hot(images, batch.target);
    }
    return batch;
  }

  void fill_inputs(const std::vector<std::int64_t>& images, const torch::Tensor& input) const {
    auto* sample = input.mutable_data_ptr<float>();
    const std::int64_t stride = input.numel() / input.size(0);
    for (const std::int64_t image : images) {
      shaper_.write(data_.image(image), sample);
      sample += stride;
    }
  }

  void fill_one_hot(const std::vector<std::int64_t>& images, const torch::Tensor& target) const {
    auto* row = target.mutable_data_ptr<float>();
    const std::int64_t stride = target.numel() / target.size(0);
    std::fill_n(row, target.numel(), 0.0F);
    for (const std::int64_t image : images) {
      row[data_.label(image)] = 1.0F;
      row += stride;
    }
  }

  BatchShape shape_;
  BatchOptions options_;
  ImageShaper shaper_;
  FashionMnist data_;
  FashionOrder order_;
  Prefetcher prefetcher_;  // last: its threads use what stands above
};

}  // namespace

std::unique_ptr<BatchSource> make_fashion_source(const BatchShape& shape, BatchOptions options) {
  check_fits(shape);
  return std::make_unique<FashionSource>(shape, options);
}

}  // namespace bench::training
