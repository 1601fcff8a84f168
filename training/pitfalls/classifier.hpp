// A small classifier of Fashion-MNIST, trained under DistributedDataParallel on the orders of
// samples that an experiment gives: what mistakes with data do to accuracy.
#pragma once

#include "training/pitfalls/lab.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace bench::training {

// 784 - 32 - 10, ReLU.
Network::Build classifier();

// Images (normalised, flat) and labels of training samples [begin, begin + count) on `device`.
struct Samples {
  at::Tensor images;
  at::Tensor labels;
  std::int64_t count() const { return labels.size(0); }
};
Samples fashion_samples(std::int64_t begin, std::int64_t count, at::Device device);

// The rows of `samples` with these indices.
Samples rows(const Samples& samples, const std::vector<std::int64_t>& indices);

// One epoch in the given order, `batch` samples a step on this rank; a shorter last batch is left
// out. Returns the number of steps.
int train_epoch(Lab& lab, Distributed& ddp, Model& model, const Samples& samples,
                const std::vector<std::int64_t>& order, std::int64_t batch, double rate);

// Share of the samples that the model labels correctly.
double accuracy(Model& model, const Samples& samples);

// FNV-1a of an order of samples: two epochs with equal hashes visited them in the same order.
std::string order_hash(const std::vector<std::int64_t>& order);

}  // namespace bench::training
