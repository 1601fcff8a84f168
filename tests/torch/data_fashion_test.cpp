#include "bench/core/error.hpp"

#include "training/data/batch_source.hpp"
#include "training/data/fashion_mnist.hpp"

#include <gtest/gtest.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <set>

namespace bench::training {
namespace {

namespace fs = std::filesystem;

class FashionFiles : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = fs::path(testing::TempDir()) /
                 ("fashion_" + std::to_string(getpid()) + "_" +
                  testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::create_directories(directory_);
  }
  void TearDown() override { fs::remove_all(directory_); }

  void write(const std::string& name, const std::string& bytes, bool compressed = true) const {
    const std::string path = (directory_ / name).string();
    if (!compressed) {
      std::ofstream(path, std::ios::binary) << bytes;
      return;
    }
    gzFile file = gzopen(path.c_str(), "wb");
    gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
    gzclose(file);
  }

  static std::string header(int dimensions, std::vector<std::uint32_t> sizes) {
    std::string bytes{'\0', '\0', '\x08', static_cast<char>(dimensions)};
    for (const std::uint32_t size : sizes) {
      for (int shift = 24; shift >= 0; shift -= 8) {
        bytes += static_cast<char>(size >> shift & 0xFF);
      }
    }
    return bytes;
  }
  static std::string images(std::uint32_t count) {
    return header(3, {count, 28, 28}) + std::string(count * 784, '\x01');
  }
  static std::string labels(std::uint32_t count, char label = 9) {
    return header(1, {count}) + std::string(count, label);
  }

  std::string error() const {
    try {
      const FashionMnist data(directory_.string());
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  }
  void expect_error(const std::string& part) const {
    EXPECT_NE(error().find(part), std::string::npos) << error();
    EXPECT_NE(error().find(directory_.string()), std::string::npos) << error();
  }

  fs::path directory_;
};

constexpr const char* kImages = "train-images-idx3-ubyte.gz";
constexpr const char* kLabels = "train-labels-idx1-ubyte.gz";

TEST_F(FashionFiles, MissingFilesNameThePackage) {
  EXPECT_THROW(FashionMnist(directory_.string()), MachineError);
  expect_error("dataset-fashion-mnist");
}

TEST_F(FashionFiles, MalformedFilesSayWhatWasExpected) {
  write(kLabels, labels(3));
  write(kImages, "not gzip, not IDX", false);
  expect_error("expected an IDX file of unsigned bytes with 3 dimensions");
  write(kImages, "");
  expect_error("too short; expected an IDX file");
  write(kImages, labels(3));
  expect_error("starts with 2049; expected an IDX file of unsigned bytes with 3 dimensions");
  write(kImages, images(3).substr(0, 1000));
  expect_error("too short; expected 2352 bytes after the header");
  write(kImages, images(3) + "x");
  expect_error("too long; expected 2352 bytes after the header");
  write(kImages, header(3, {~0u, ~0u, ~0u}));
  expect_error("sizes are implausible");
  write(kImages, header(3, {1, 20, 20}) + std::string(400, 'x'));
  expect_error("images of 20x20; expected 28x28");
  write(kImages, images(3));
  EXPECT_EQ(error(), "accepted");
  write(kLabels, labels(2));
  expect_error("2 labels; expected 3, one for each image");
  write(kLabels, labels(3, 10));
  expect_error("label 10 at position 0; expected 0 to 9");
}

TEST_F(FashionFiles, DamagedCompressionIsNoticed) {
  write(kImages, images(30));
  write(kLabels, labels(30));
  const fs::path path = directory_ / kImages;
  fs::resize_file(path, fs::file_size(path) - 12);
  EXPECT_NE(error(), "accepted");
}

const FashionMnist& installed() {
  static const FashionMnist data(BatchOptions().directory);
  return data;
}

TEST(FashionMnist, StatisticsAreThoseOfTheTrainingImages) {
  const FashionMnist& data = installed();
  ASSERT_EQ(data.size(), 60000);
  double sum = 0, squares = 0;
  std::vector<int> per_class(10);
  for (std::int64_t i = 0; i < data.size(); ++i) {
    ++per_class[static_cast<std::size_t>(data.label(i))];
    for (std::int64_t p = 0; p < kFashionPixels; ++p) {
      const double value = data.image(i)[p] / 255.0;
      sum += value;
      squares += value * value;
    }
  }
  const double count = static_cast<double>(data.size() * kFashionPixels);
  EXPECT_NEAR(sum / count, kFashionMean, 1e-4);
  EXPECT_NEAR(std::sqrt(squares / count - sum / count * sum / count), kFashionDeviation, 1e-4);
  EXPECT_EQ(per_class, std::vector<int>(10, 6000));
}

torch::Tensor normalised(const std::uint8_t* image) {
  return (torch::from_blob(const_cast<std::uint8_t*>(image), {1, 1, 28, 28}, torch::kUInt8)
              .to(torch::kFloat32)
              .div(255) -
          kFashionMean) /
         kFashionDeviation;
}

TEST(ImageShaper, InterpolatesAsPyTorchDoes) {
  const std::uint8_t* image = installed().image(17);
  for (const auto& [height, width] : {std::pair{28, 28}, {224, 224}, {64, 31}, {7, 300}, {1, 1}}) {
    torch::Tensor sample = torch::empty({3, height, width});
    ImageShaper({3, height, width}).write(image, sample.data_ptr<float>());
    const torch::Tensor expected =
        torch::upsample_bilinear2d(normalised(image), {height, width}, /*align_corners=*/false)[0]
            .expand({3, height, width});
    EXPECT_TRUE(torch::allclose(sample, expected, 1e-5, 1e-5))
        << height << "x" << width << ": " << (sample - expected).abs().max();
  }
}

TEST(ImageShaper, FlatSamplesArePaddedWithZeros) {
  const std::uint8_t* image = installed().image(3);
  torch::Tensor sample = torch::full({1000}, 7.0F);
  ImageShaper({1000}).write(image, sample.data_ptr<float>());
  EXPECT_TRUE(torch::allclose(sample.slice(0, 0, 784), normalised(image).flatten()));
  EXPECT_EQ(sample.slice(0, 784, 1000).abs().sum().item<float>(), 0);
  EXPECT_THROW(ImageShaper({783}), UsageError);
  EXPECT_THROW(ImageShaper({28, 28}), UsageError);
}

std::unique_ptr<Model> model_for(const std::string& name, std::vector<std::int64_t> input = {}) {
  ModelSpec spec;
  spec.name = name;
  spec.input_shape = std::move(input);
  return make_model(spec, 1, Scale::twin, Init::none);
}

BatchOptions fashion(std::vector<std::int64_t> sizes, int rank = 0, int world_size = 1,
                     int workers = 2) {
  BatchOptions options;
  options.data = DataKind::fashion_mnist;
  options.micro_batches = std::move(sizes);
  options.rank = rank;
  options.world_size = world_size;
  options.workers = workers;
  return options;
}

bool equal(const Batch& a, const Batch& b) {
  return torch::equal(a.input, b.input) && torch::equal(a.target, b.target);
}

TEST(FashionSource, WorkersDoNotChangeTheBatches) {
  const auto model = model_for("resnet18", {3, 28, 28});
  const auto plain = make_batch_source(*model, fashion({6, 5}, 0, 1, 0));
  const auto one = make_batch_source(*model, fashion({6, 5}, 0, 1, 1));
  const auto many = make_batch_source(*model, fashion({6, 5}, 0, 1, 5));
  for (int i = 0; i < 40; ++i) {
    const Batch expected = plain->next();
    EXPECT_EQ(expected.input.size(0), i % 2 == 0 ? 6 : 5);
    EXPECT_TRUE(equal(one->next(), expected)) << i;
    EXPECT_TRUE(equal(many->next(), expected)) << i;
  }
}

TEST(FashionSource, AllRanksTogetherAreTheGlobalBatch) {
  const auto model = model_for("mlp");
  const auto all = make_batch_source(*model, fashion({10, 7}, kAllRanks, 3));
  std::vector<std::unique_ptr<BatchSource>> ranks;
  for (int rank = 0; rank < 3; ++rank) {
    ranks.push_back(make_batch_source(*model, fashion({10, 7}, rank, 3, 1)));
  }
  for (int i = 0; i < 4; ++i) {
    std::vector<torch::Tensor> inputs, targets;
    for (const auto& rank : ranks) {
      const Batch part = rank->next();
      inputs.push_back(part.input);
      targets.push_back(part.target);
    }
    EXPECT_TRUE(equal(all->next(), {torch::cat(inputs), torch::cat(targets)})) << i;
  }
}

// With equal slices the ranks' samplers divide the very samples that one device would take.
TEST(FashionSource, AnEvenGlobalBatchHasTheSamplesOfOneDevice) {
  const auto model = model_for("mlp");
  const Batch single = make_batch_source(*model, fashion({12}))->next();
  const Batch ranks = make_batch_source(*model, fashion({12}, kAllRanks, 4))->next();
  const auto sums = [](const Batch& batch) {
    const torch::Tensor rows = batch.input.to(torch::kFloat64).sum(1).contiguous();
    return std::multiset<double>(rows.data_ptr<double>(), rows.data_ptr<double>() + 12);
  };
  EXPECT_EQ(sums(single), sums(ranks));
  EXPECT_FALSE(equal(single, ranks));  // in another order
}

TEST(FashionSource, EpochsAreShuffledAnew) {
  const auto model = model_for("resnet18", {3, 28, 28});
  const auto source = make_batch_source(*model, fashion({20000}, 0, 1, 1));
  std::vector<Batch> batches;
  for (int i = 0; i < 4; ++i) batches.push_back({torch::Tensor(), source->next().target});
  std::vector<int> per_class(10);
  for (int i = 0; i < 3; ++i) {
    const auto counts = torch::bincount(batches[static_cast<std::size_t>(i)].target, {}, 10);
    for (std::size_t c = 0; c < 10; ++c) {
      per_class[c] += counts[static_cast<std::int64_t>(c)].item<int>();
    }
  }
  EXPECT_EQ(per_class, std::vector<int>(10, 6000));  // one epoch is the whole data set
  EXPECT_FALSE(torch::equal(batches[0].target, batches[3].target));
}

TEST(FashionSource, RegressionTargetsAreOneHot) {
  const auto model = model_for("mlp");
  const Batch batch = make_batch_source(*model, fashion({5}))->next();
  EXPECT_EQ(batch.target.sizes().vec(), (std::vector<std::int64_t>{5, 640}));
  EXPECT_TRUE(torch::equal(batch.target.sum(1), torch::ones({5})));
  EXPECT_LT(batch.target.argmax(1).max().item<std::int64_t>(), 10);
}

TEST(FashionSource, WhatDoesNotFitIsExplained) {
  ModelSpec spec;
  spec.name = "resnet18";
  spec.classes = 5;
  const auto few = make_model(spec, 1, Scale::twin, Init::none);
  EXPECT_THROW(make_batch_source(*few, fashion({4})), UsageError);
  const auto model = model_for("mlp");
  EXPECT_THROW(make_batch_source(*model, fashion({60001})), UsageError);
  BatchOptions elsewhere = fashion({4});
  elsewhere.directory = "/nonexistent";
  EXPECT_THROW(make_batch_source(*model, elsewhere), MachineError);
}

}  // namespace
}  // namespace bench::training
