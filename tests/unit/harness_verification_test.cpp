// Verification must accept rounding and refuse every mistake that data-parallel code makes. The
// fingerprints come from a small real training in float32, so the tolerance is tested against
// arithmetic and not against numbers made up to pass.
#include "bench/core/strategy.hpp"
#include "bench/harness/verification.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <random>
#include <vector>

namespace bench {
namespace {

constexpr int kFeatures = 200;
constexpr int kSamples = 64;
constexpr int kRanks = 4;

struct Mistakes {
  double gradient_factor = 1;      // gradients summed where they should be averaged, or the reverse
  bool all_reduce = true;          // off: every rank trains on its own samples
  bool first_bucket_only = false;  // off: the second parameter is never reduced
  std::uint64_t seed = 1;
  bool same_samples = false;    // every rank sees the first slice (a sampler forgotten)
  bool backwards_sums = false;  // another order of additions: rounding, not a mistake
};

// Logistic-like regression with two parameters (weights and bias), trained by SGD with momentum.
class Training {
 public:
  explicit Training(std::uint64_t seed) {
    std::mt19937 random(static_cast<std::mt19937::result_type>(seed));
    std::normal_distribution<double> normal;
    for (int i = 0; i <= kFeatures; ++i) start_.push_back(0.1 * normal(random));
    now_ = start_;
    velocity_.resize(now_.size());
    std::mt19937 data_random(7);
    for (int s = 0; s < kSamples; ++s) {
      std::vector<double> x;
      for (int i = 0; i < kFeatures; ++i) x.push_back(normal(data_random));
      targets_.push_back(0.3 * x[0] - 0.7 * x[5] + 0.1);
      inputs_.push_back(std::move(x));
    }
  }

  // Mean loss and gradient over samples [begin, end).
  double gradient(int begin, int end, bool backwards, std::vector<double>& into) const {
    into.assign(now_.size(), 0.0);
    double loss = 0;
    for (int k = begin; k < end; ++k) {
      const int s = backwards ? end - 1 - (k - begin) : k;
      double output = now_[kFeatures];
      for (int i = 0; i < kFeatures; ++i) {
        const int f = backwards ? kFeatures - 1 - i : i;
        output += now_[f] * inputs_[s][f];
      }
      const double error = std::tanh(output) - targets_[s];
      const double slope = 2 * error * (1 - std::tanh(output) * std::tanh(output));
      loss += error * error;
      for (int f = 0; f < kFeatures; ++f) into[f] += slope * inputs_[s][f];
      into[kFeatures] += slope;
    }
    for (double& g : into) g /= static_cast<double>(end - begin);
    return loss / static_cast<double>(end - begin);
  }

  void update(const std::vector<double>& gradient) {
    for (std::size_t i = 0; i < now_.size(); ++i) {
      velocity_[i] = 0.9 * velocity_[i] + gradient[i];
      now_[i] -= 0.01 * velocity_[i];
    }
  }

  Fingerprint fingerprint(std::vector<double> losses) const {
    Fingerprint print;
    print.losses = std::move(losses);
    print.parameters = {digest("weight", 0, kFeatures), digest("bias", kFeatures, 1)};
    return print;
  }

 private:
  ParameterDigest digest(const char* name, int begin, int count) const {
    ParameterDigest d{name, count};
    std::mt19937 signs(3);
    for (int i = begin; i < begin + count; ++i) {
      const double change = double{now_[i]} - double{start_[i]};
      d.norm += double{now_[i]} * double{now_[i]};
      d.change_norm += change * change;
      for (double& p : d.change_projection) p += signs() % 2 ? change : -change;
    }
    d.norm = std::sqrt(d.norm);
    d.change_norm = std::sqrt(d.change_norm);
    return d;
  }

  std::vector<double> start_;
  std::vector<double> now_;
  std::vector<double> velocity_;
  std::vector<std::vector<double>> inputs_;
  std::vector<double> targets_;
};

Fingerprint reference() {
  Training training(1);
  std::vector<double> losses;
  std::vector<double> gradient;
  for (int step = 0; step < kVerifySteps; ++step) {
    losses.push_back(training.gradient(0, kSamples, false, gradient));
    training.update(gradient);
  }
  return training.fingerprint(losses);
}

std::vector<Fingerprint> distributed(const Mistakes& mistakes) {
  std::vector<Training> ranks(kRanks, Training(mistakes.seed));
  std::vector<std::vector<double>> losses(kRanks);
  std::vector<std::vector<double>> gradients(kRanks);
  for (int step = 0; step < kVerifySteps; ++step) {
    for (int r = 0; r < kRanks; ++r) {
      const int slice = mistakes.same_samples ? 0 : r;
      const int size = kSamples / kRanks;
      losses[r].push_back(ranks[r].gradient(slice * size, (slice + 1) * size,
                                            mistakes.backwards_sums, gradients[r]));
    }
    std::vector<double> mean(gradients[0].size(), 0.0);
    for (const auto& gradient : gradients) {
      for (std::size_t i = 0; i < mean.size(); ++i) {
        mean[i] += gradient[i] / kRanks * mistakes.gradient_factor;
      }
    }
    for (int r = 0; r < kRanks; ++r) {
      std::vector<double> applied = mistakes.all_reduce ? mean : gradients[r];
      if (mistakes.first_bucket_only) applied.back() = gradients[r].back();
      ranks[r].update(applied);
    }
  }
  std::vector<Fingerprint> prints;
  for (int r = 0; r < kRanks; ++r) prints.push_back(ranks[r].fingerprint(losses[r]));
  return prints;
}

Verdict verdict(const Mistakes& mistakes) {
  return compare(distributed(mistakes), reference(),
                 std::vector<std::int64_t>(kRanks, kSamples / kRanks));
}

TEST(Verification, RoundingIsAccepted) {
  const Verdict plain = verdict({});
  EXPECT_TRUE(plain.equal) << plain.text;
  EXPECT_GT(plain.largest, 0) << "another order of additions must leave a trace";
  Mistakes backwards;
  backwards.backwards_sums = true;
  const Verdict reversed = verdict(backwards);
  EXPECT_TRUE(reversed.equal) << reversed.text;
  EXPECT_NE(reversed.text.find("equals single within"), std::string::npos);
}

// The smallest mistakes and the rounding they must not be confused with are far apart.
TEST(Verification, TheToleranceHasRoomOnBothSides) {
  Mistakes backwards;
  backwards.backwards_sums = true;
  EXPECT_LT(verdict(backwards).largest * 2, rounding_tolerance(1));
  Mistakes slight;
  slight.gradient_factor = 1.01;
  EXPECT_GT(verdict(slight).largest, 5 * rounding_tolerance(kVerifySteps));
}

TEST(Verification, MistakesAreRefused) {
  Mistakes sum;
  sum.gradient_factor = kRanks;
  Mistakes slight;
  slight.gradient_factor = 1.01;
  Mistakes no_reduce;
  no_reduce.all_reduce = false;
  Mistakes one_bucket;
  one_bucket.first_bucket_only = true;
  Mistakes seed;
  seed.seed = 2;
  Mistakes samples;
  samples.same_samples = true;
  for (const Mistakes& mistake : {sum, slight, no_reduce, one_bucket, seed, samples}) {
    const Verdict found = verdict(mistake);
    EXPECT_FALSE(found.equal) << found.text;
    EXPECT_FALSE(found.text.empty());
  }
}

TEST(Verification, RanksThatDriftApartAreRefused) {
  auto prints = distributed({});
  prints[2].parameters[0].change_projection[1] *= 1 + 1e-6;
  const Verdict found =
      compare(prints, reference(), std::vector<std::int64_t>(kRanks, kSamples / kRanks));
  EXPECT_FALSE(found.equal);
  EXPECT_NE(found.text.find("ranks 0 and 2"), std::string::npos) << found.text;
}

TEST(Verification, NotANumberIsNeverEqual) {
  auto broken = reference();
  broken.losses[1] = NAN;
  EXPECT_FALSE(compare({broken}, reference(), {kSamples}).equal);
  EXPECT_FALSE(compare({reference()}, broken, {kSamples}).equal);
  broken = reference();
  for (double& p : broken.parameters[0].change_projection) p = NAN;
  EXPECT_FALSE(compare({broken}, reference(), {kSamples}).equal);
}

TEST(Verification, OtherFormsCannotBeCompared) {
  auto fewer = reference();
  fewer.parameters.pop_back();
  EXPECT_FALSE(compare({fewer}, reference(), {kSamples}).equal);
  auto shorter = reference();
  shorter.losses.pop_back();
  EXPECT_FALSE(compare({shorter}, reference(), {kSamples}).equal);
  EXPECT_FALSE(compare({}, reference(), {}).equal);
}

Case sample_case(Strategy strategy, std::int64_t batch, int gpus, int accumulation = 1) {
  Case work;
  work.strategy = strategy;
  work.batch = batch;
  work.accumulation = accumulation;
  work.gpus.assign(static_cast<std::size_t>(gpus), 0);
  for (int i = 0; i < gpus; ++i) work.gpus[static_cast<std::size_t>(i)] = i;
  return work;
}

TEST(StrategyChunks, FollowTorchChunkAndRankSlices) {
  using Chunks = std::vector<std::int64_t>;
  EXPECT_EQ(strategy_chunks(sample_case(Strategy::single, 10, 1)), (Chunks{10}));
  EXPECT_EQ(strategy_chunks(sample_case(Strategy::data_parallel, 10, 4)), (Chunks{3, 3, 3, 1}));
  // torch.chunk may give fewer pieces than devices.
  EXPECT_EQ(strategy_chunks(sample_case(Strategy::data_parallel, 5, 4)), (Chunks{2, 2, 1}));
  EXPECT_EQ(strategy_chunks(sample_case(Strategy::distributed, 10, 4)), (Chunks{3, 3, 2, 2}));
  EXPECT_EQ(strategy_chunks(sample_case(Strategy::distributed, 10, 2, 2)), (Chunks{3, 2, 3, 2}));
  EXPECT_EQ(samples_per_rank(sample_case(Strategy::distributed, 10, 2, 2)), (Chunks{6, 4}));
}

TEST(VerificationGroup, BatchesShareATwin) {
  const Case small = sample_case(Strategy::distributed, 32, 4);
  const Case large = sample_case(Strategy::distributed, 256, 4);
  EXPECT_EQ(verification_group(small), verification_group(large));
  EXPECT_EQ(verify_job(large).work.batch, 8);
  EXPECT_TRUE(verify_job(large).twin);
  Case numeric = large;
  numeric.execute = Execute::numeric;
  EXPECT_NE(verification_group(numeric), verification_group(small));
  EXPECT_EQ(verify_job(numeric).work.batch, 256);
  EXPECT_FALSE(verify_job(numeric).twin);
  Case options = large;
  options.ddp.static_graph = true;
  EXPECT_NE(verification_group(options), verification_group(large));
}

// An uneven batch stays uneven in the twin: chunks of different sizes are what goes wrong.
TEST(VerificationGroup, TheTwinKeepsTheRemainder) {
  const Job job = verify_job(sample_case(Strategy::data_parallel, 130, 4));
  EXPECT_EQ(job.work.batch, 10);
  EXPECT_EQ(reference_job(sample_case(Strategy::data_parallel, 130, 4)).chunks,
            (std::vector<std::int64_t>{3, 3, 3, 1}));
}

}  // namespace
}  // namespace bench
