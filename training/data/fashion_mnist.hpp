// Fashion-MNIST (Xiao, Rasul, Vollgraf, arXiv 1708.07747): 60,000 grey images of 28x28 in ten
// classes, and how an image becomes a sample of a model's input shape.
#pragma once

#include "training/data/idx_file.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace bench::training {

inline constexpr std::int64_t kFashionSide = 28;
inline constexpr std::int64_t kFashionPixels = kFashionSide * kFashionSide;
inline constexpr std::int64_t kFashionClasses = 10;
// Mean and standard deviation of the training images, scaled to [0, 1]; a test recomputes them.
inline constexpr float kFashionMean = 0.2860F;
inline constexpr float kFashionDeviation = 0.3530F;

class FashionMnist {
 public:
  // Reads the training images and labels of `directory`; see read_idx() for its errors.
  explicit FashionMnist(const std::string& directory);

  std::int64_t size() const { return static_cast<std::int64_t>(labels_.values.size()); }
  const std::uint8_t* image(std::int64_t index) const {
    return images_.values.data() + index * kFashionPixels;
  }
  int label(std::int64_t index) const { return labels_.values[static_cast<std::size_t>(index)]; }

 private:
  IdxArray images_;
  IdxArray labels_;
};

// Writes a normalised image as one float sample: {C,H,W} by bilinear interpolation (corners not
// aligned, PyTorch's default) and the grey value in every channel; {N} with N >= 784 row by row,
// followed by zeros.
class ImageShaper {
 public:
  // Throws UsageError for another shape.
  explicit ImageShaper(const std::vector<std::int64_t>& sample_shape);

  void write(const std::uint8_t* image, float* sample) const;

 private:
  // Output position = first + (second - first) * share, between two source positions.
  struct Tap {
    std::int64_t first = 0;
    std::int64_t second = 0;
    float share = 0;
  };
  static std::vector<Tap> taps(std::int64_t size);
  void write_channel(const std::uint8_t* image, float* channel) const;

  std::int64_t channels_ = 1;
  std::int64_t padding_ = 0;  // zeros after the last value
  std::vector<Tap> rows_;
  std::vector<Tap> columns_;
  float normalised_[256];
};

}  // namespace bench::training
