#include "training/data/batch_source.hpp"
#include "training/data/synthetic.hpp"

#include <gtest/gtest.h>

namespace bench::training {
namespace {

std::unique_ptr<Model> small_model(const std::string& name) {
  ModelSpec spec;
  spec.name = name;
  if (name == "resnet18") spec.input_shape = {3, 32, 32};
  return make_model(spec, 1, Scale::twin, Init::none);
}

Batch concatenated(const std::vector<Batch>& parts) {
  std::vector<torch::Tensor> inputs, targets;
  for (const Batch& part : parts) {
    inputs.push_back(part.input);
    targets.push_back(part.target);
  }
  return {torch::cat(inputs), torch::cat(targets)};
}

bool same_batch(const Batch& a, const Batch& b) {
  return torch::equal(a.input, b.input) && torch::equal(a.target, b.target);
}

BatchOptions synthetic(std::vector<std::int64_t> sizes, int rank = 0, int world_size = 1) {
  BatchOptions options;
  options.micro_batches = std::move(sizes);
  options.rank = rank;
  options.world_size = world_size;
  return options;
}

TEST(RankSlice, CoversTheBatchInOrder) {
  for (const std::int64_t batch : {0, 1, 3, 8, 13}) {
    for (const int world_size : {1, 2, 3, 5, 16}) {
      std::int64_t next = 0;
      for (int rank = 0; rank < world_size; ++rank) {
        const Slice slice = rank_slice(batch, rank, world_size);
        EXPECT_EQ(slice.begin, next);
        EXPECT_GE(slice.count, batch / world_size);
        EXPECT_LE(slice.count, batch / world_size + 1);
        next += slice.count;
      }
      EXPECT_EQ(next, batch);
    }
  }
}

TEST(MicroBatches, DivideTheStep) {
  Case work;
  work.batch = 10;
  work.accumulation = 4;
  EXPECT_EQ(micro_batches(work), (std::vector<std::int64_t>{3, 3, 2, 2}));
}

TEST(Synthetic, TheGlobalBatchDoesNotDependOnTheWorldSize) {
  for (const char* name : {"resnet18", "mlp"}) {
    const auto model = small_model(name);
    const Batch whole = make_batch_source(*model, synthetic({7}))->next();
    EXPECT_EQ(whole.input.size(0), 7);
    for (const int world_size : {2, 3, 4}) {
      std::vector<Batch> parts;
      for (int rank = 0; rank < world_size; ++rank) {
        parts.push_back(make_batch_source(*model, synthetic({7}, rank, world_size))->next());
      }
      EXPECT_TRUE(same_batch(concatenated(parts), whole)) << name << " on " << world_size;
    }
    EXPECT_TRUE(same_batch(make_batch_source(*model, synthetic({7}, kAllRanks, 4))->next(), whole));
  }
}

// Shape execution asks about batches that no host could hold.
TEST(Synthetic, WithoutValuesABatchTakesNoMemory) {
  const BatchShape shape(*small_model("resnet18"));
  constexpr std::int64_t kSamples = 1'000'000'000;
  const Batch batch = draw_synthetic(shape, 1, 0, {0, kSamples}, false);
  EXPECT_EQ(batch.input.size(0), kSamples);
  EXPECT_TRUE(batch.input.is_contiguous());
  EXPECT_EQ(batch.input.index({kSamples - 1}).sum().item<double>(), 0);
  EXPECT_EQ(batch.target.index({kSamples - 1}).item<std::int64_t>(), 0);
  EXPECT_THROW(draw_synthetic(shape, 1, 0, {0, std::int64_t{1} << 45}, false), c10::Error);
  EXPECT_THROW(draw_synthetic(shape, 1, 0, {0, std::int64_t{1} << 62}, false), c10::Error);
}

TEST(Synthetic, ResidentBatchesRepeatAndFreshOnesDoNot) {
  const auto model = small_model("resnet18");
  const auto resident = make_batch_source(*model, synthetic({2, 3}));
  const Batch a = resident->next(), b = resident->next(), c = resident->next();
  EXPECT_EQ(b.input.size(0), 3);
  EXPECT_TRUE(a.input.is_same(c.input));
  BatchOptions options = synthetic({2, 3});
  options.fresh = true;
  const auto fresh = make_batch_source(*model, options);
  EXPECT_TRUE(same_batch(fresh->next(), a));
  EXPECT_TRUE(same_batch(fresh->next(), b));
  EXPECT_FALSE(same_batch(fresh->next(), a));
}

TEST(Synthetic, SeedsStepsAndSamplesDiffer) {
  const auto model = small_model("resnet18");
  const Batch one = make_batch_source(*model, synthetic({4}))->next();
  BatchOptions options = synthetic({4});
  options.seed = 2;
  EXPECT_FALSE(same_batch(make_batch_source(*model, options)->next(), one));
  EXPECT_FALSE(torch::equal(one.input[0], one.input[1]));
  EXPECT_NEAR(one.input.mean().item<double>(), 0, 0.05);
  EXPECT_NEAR(one.input.std().item<double>(), 1, 0.05);
}

TEST(Synthetic, TargetsFitTheLoss) {
  const auto classifier = small_model("resnet18");
  const Batch classes = make_batch_source(*classifier, synthetic({64}))->next();
  EXPECT_EQ(classes.target.scalar_type(), torch::kInt64);
  EXPECT_EQ(classes.target.dim(), 1);
  EXPECT_GE(classes.target.min().item<std::int64_t>(), 0);
  EXPECT_LT(classes.target.max().item<std::int64_t>(), 1000);
  EXPECT_GT(classes.target.max().item<std::int64_t>(), 500);
  const auto regressor = small_model("mlp");
  const Batch values = make_batch_source(*regressor, synthetic({2}))->next();
  EXPECT_EQ(values.target.sizes().vec(), (std::vector<std::int64_t>{2, 640}));
  EXPECT_TRUE(std::isfinite(
      model_loss(regressor->loss_kind,
                 make_model({.name = "mlp"}, 1, Scale::twin)->forward(values.input), values.target)
          .item<double>()));
}

TEST(Synthetic, WithoutValuesTargetsAreStillClasses) {
  const auto model = small_model("resnet18");
  BatchOptions options = synthetic({32});
  const Batch valued = make_batch_source(*model, options)->next();
  options.values = false;
  const Batch batch = make_batch_source(*model, options)->next();
  EXPECT_EQ(batch.input.sizes(), valued.input.sizes());
  EXPECT_GE(batch.target.min().item<std::int64_t>(), 0);
  EXPECT_LT(batch.target.max().item<std::int64_t>(), 1000);
}

TEST(Synthetic, PlacesEveryTensorOnce) {
  const auto model = small_model("mlp");
  BatchOptions options = synthetic({2});
  int placed = 0;
  options.place = [&](const torch::Tensor& tensor) {
    ++placed;
    return tensor.clone();
  };
  const auto source = make_batch_source(*model, options);
  for (int i = 0; i < 5; ++i) source->next();
  EXPECT_EQ(placed, 2);
}

}  // namespace
}  // namespace bench::training
