#include "training/data/fashion_mnist.hpp"

#include "bench/core/error.hpp"

#include <algorithm>

namespace bench::training {

FashionMnist::FashionMnist(const std::string& directory) {
  const std::string image_file = directory + "/train-images-idx3-ubyte.gz";
  const std::string label_file = directory + "/train-labels-idx1-ubyte.gz";
  images_ = read_idx(image_file, 3);
  labels_ = read_idx(label_file, 1);
  if (images_.sizes[1] != kFashionSide || images_.sizes[2] != kFashionSide) {
    throw UsageError(image_file + ": images of " + std::to_string(images_.sizes[1]) + "x" +
                     std::to_string(images_.sizes[2]) + "; expected 28x28");
  }
  if (images_.sizes[0] != labels_.sizes[0]) {
    throw UsageError(label_file + ": " + std::to_string(labels_.sizes[0]) + " labels; expected " +
                     std::to_string(images_.sizes[0]) + ", one for each image of " + image_file);
  }
  const auto wrong = std::find_if(labels_.values.begin(), labels_.values.end(),
                                  [](std::uint8_t label) { return label >= kFashionClasses; });
  if (wrong != labels_.values.end()) {
    throw UsageError(label_file + ": label " + std::to_string(*wrong) + " at position " +
                     std::to_string(wrong - labels_.values.begin()) + "; expected 0 to 9");
  }
}

ImageShaper::ImageShaper(const std::vector<std::int64_t>& shape) {
  const bool picture = shape.size() == 3;
  const bool vector = shape.size() == 1 && shape[0] >= kFashionPixels;
  if (!picture && !vector) {
    throw UsageError(
        "--data fashion_mnist: expected a model whose input is an image CxHxW or at "
        "least 784 numbers, into which its 28x28 images can be written");
  }
  if (picture) {
    channels_ = shape[0];
    rows_ = taps(shape[1]);
    columns_ = taps(shape[2]);
  } else {
    padding_ = shape[0] - kFashionPixels;
    rows_ = columns_ = taps(kFashionSide);
  }
  for (int value = 0; value < 256; ++value) {
    normalised_[value] = (static_cast<float>(value) / 255.0F - kFashionMean) / kFashionDeviation;
  }
}

std::vector<ImageShaper::Tap> ImageShaper::taps(std::int64_t size) {
  std::vector<Tap> taps(static_cast<std::size_t>(size));
  const float scale = static_cast<float>(kFashionSide) / static_cast<float>(size);
  for (std::int64_t i = 0; i < size; ++i) {
    const float source = std::max(0.0F, (static_cast<float>(i) + 0.5F) * scale - 0.5F);
    Tap& tap = taps[static_cast<std::size_t>(i)];
    tap.first = std::min(static_cast<std::int64_t>(source), kFashionSide - 1);
    tap.second = std::min(tap.first + 1, kFashionSide - 1);
    tap.share = source - static_cast<float>(tap.first);
  }
  return taps;
}

void ImageShaper::write_channel(const std::uint8_t* image, float* channel) const {
  float blended[kFashionSide];  // one row of the source, between two of its rows
  for (const Tap& row : rows_) {
    const std::uint8_t* above = image + row.first * kFashionSide;
    const std::uint8_t* below = image + row.second * kFashionSide;
    for (std::int64_t x = 0; x < kFashionSide; ++x) {
      const float from = normalised_[above[x]];
      blended[x] = from + (normalised_[below[x]] - from) * row.share;
    }
    for (const Tap& column : columns_) {
      const float from = blended[column.first];
      *channel++ = from + (blended[column.second] - from) * column.share;
    }
  }
}

void ImageShaper::write(const std::uint8_t* image, float* sample) const {
  const std::size_t area = rows_.size() * columns_.size();
  write_channel(image, sample);
  for (std::int64_t c = 1; c < channels_; ++c) {
    std::copy_n(sample, area, sample + static_cast<std::size_t>(c) * area);
  }
  std::fill_n(sample + area * static_cast<std::size_t>(channels_), padding_, 0.0F);
}

}  // namespace bench::training
