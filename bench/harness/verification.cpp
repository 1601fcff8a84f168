#include "bench/harness/verification.hpp"

#include "bench/core/case_json.hpp"
#include "bench/core/strategy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace bench {
namespace {

constexpr double kUnitRoundoff = 0x1p-53;  // float64
constexpr std::int64_t kSmallSamplesPerGpu = 2;

// How far rounding alone drives two runs of one program apart. Verification computes in float64: in
// float32, ResNet-18 run twice with nothing but another order of additions differed by 5.6e-3 of a
// parameter's change after four steps, because ReLUs near zero switch and BatchNorm divides by the
// small variance of a few samples. In float64 the largest difference seen over the zoo was 2e-13
// after three steps. 64 roundoffs after the first step and a factor of 1024 for each further one
// leave room for deeper networks, and a gradient that is wrong by one millionth is still found.
constexpr double kFirstStepRoundoffs = 64;
constexpr double kGrowthPerStep = 1024;

// Ranks of a distributed run end with the same bits: every rank applies the same reduced gradient.
// The digests are sums in double; 2^-40 allows for their own order and for nothing else.
constexpr double kRankTolerance = 0x1p-40;

std::int64_t share(std::int64_t total, std::int64_t index, std::int64_t parts) {
  return total / parts + (index < total % parts ? 1 : 0);
}

// Python's torch.chunk: pieces of ceil(n / parts), the last one smaller, possibly fewer pieces.
void append_torch_chunks(std::int64_t samples, std::int64_t parts, std::vector<std::int64_t>& to) {
  const std::int64_t size = (samples + parts - 1) / parts;
  for (std::int64_t rest = samples; rest > 0; rest -= size) to.push_back(std::min(size, rest));
}

Case checked_case(const Case& work) {
  return verified_by_twin(work) ? with_small_batch(work) : work;
}

double relative(double difference, double scale) {
  if (difference == 0) return 0;
  return scale > 0 ? difference / scale : INFINITY;
}

// Distance between two changes of a parameter, estimated from projections on random signs: the
// expectation of a squared projection of d is the squared norm of d.
double change_distance(const ParameterDigest& a, const ParameterDigest& b) {
  double sum = 0;
  for (int i = 0; i < 4; ++i) {
    const double d = a.change_projection[i] - b.change_projection[i];
    sum += d * d;
  }
  return std::max(std::sqrt(sum / 4), std::fabs(a.change_norm - b.change_norm));
}

// What a parameter's change is compared with. Parameters are rounded when they are updated, and a
// gradient that is zero in exact arithmetic (a bias before BatchNorm) is rounding noise of the
// gradients around it; so each one gets a share of the model's mean change as well.
class ChangeScale {
 public:
  explicit ChangeScale(const Fingerprint& reference) {
    double squares = 0;
    double count = 0;
    for (const ParameterDigest& p : reference.parameters) {
      squares += p.change_norm * p.change_norm;
      count += static_cast<double>(p.numel);
    }
    root_mean_square_ = count > 0 ? std::sqrt(squares / count) : 0;
  }

  double of(const ParameterDigest& p) const {
    return std::max(p.change_norm, root_mean_square_ * std::sqrt(static_cast<double>(p.numel)));
  }

 private:
  double root_mean_square_;
};

double mean_loss(const std::vector<Fingerprint>& ranks, const std::vector<std::int64_t>& samples,
                 std::size_t step) {
  double sum = 0;
  double weight = 0;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    sum += ranks[r].losses[step] * static_cast<double>(samples[r]);
    weight += static_cast<double>(samples[r]);
  }
  return sum / weight;
}

// Collects the largest difference and the first one beyond its tolerance.
class Comparison {
 public:
  void add(double difference, double tolerance, const std::string& what) {
    // Written so that a NaN is a difference.
    if (!(difference <= tolerance) && verdict_.text.empty()) {
      verdict_.text = fmt::format(
          "{} differs from single by {:.2g} relative, rounding explains "
          "{:.2g}",
          what, difference, tolerance);
    }
    if (!(difference <= verdict_.largest)) verdict_.largest = difference;
  }
  void fail(const std::string& text) {
    if (verdict_.text.empty()) verdict_.text = text;
  }
  Verdict finish() {
    verdict_.equal = verdict_.text.empty();
    if (verdict_.equal)
      verdict_.text = fmt::format("equals single within {:.1g}", verdict_.largest);
    return verdict_;
  }

 private:
  Verdict verdict_;
};

// Whether all fingerprints have the reference's form; anything else cannot be compared.
bool same_form(const Fingerprint& a, const Fingerprint& b) {
  return a.losses.size() == b.losses.size() && !a.losses.empty() &&
         std::equal(a.parameters.begin(), a.parameters.end(), b.parameters.begin(),
                    b.parameters.end(), [](const ParameterDigest& x, const ParameterDigest& y) {
                      return x.name == y.name && x.numel == y.numel;
                    });
}

void compare_ranks(const std::vector<Fingerprint>& ranks, Comparison& comparison) {
  for (std::size_t r = 1; r < ranks.size(); ++r) {
    for (std::size_t i = 0; i < ranks[0].parameters.size(); ++i) {
      const ParameterDigest& first = ranks[0].parameters[i];
      const ParameterDigest& other = ranks[r].parameters[i];
      const double apart = relative(change_distance(first, other), first.change_norm);
      if (apart <= kRankTolerance) continue;
      comparison.fail(
          fmt::format("ranks 0 and {} hold different values of {} ({:.2g} of its "
                      "change)",
                      r, first.name, apart));
      return;
    }
  }
}

void compare_with_reference(const std::vector<Fingerprint>& ranks, const Fingerprint& reference,
                            const std::vector<std::int64_t>& rank_samples, Comparison& comparison) {
  for (std::size_t step = 0; step < reference.losses.size(); ++step) {
    const double difference =
        std::fabs(mean_loss(ranks, rank_samples, step) - reference.losses[step]);
    comparison.add(relative(difference, std::fabs(reference.losses[step])),
                   rounding_tolerance(static_cast<int>(step)),
                   fmt::format("the loss of step {}", step + 1));
  }
  const ChangeScale scale(reference);
  const double tolerance = rounding_tolerance(static_cast<int>(reference.losses.size()));
  for (std::size_t i = 0; i < reference.parameters.size(); ++i) {
    const ParameterDigest& expected = reference.parameters[i];
    const double distance = change_distance(ranks[0].parameters[i], expected);
    const double storage =
        kUnitRoundoff * expected.norm * static_cast<double>(reference.losses.size());
    // In this order max() keeps a NaN.
    comparison.add(relative(std::max(distance - storage, 0.0), scale.of(expected)), tolerance,
                   "the change of " + expected.name);
  }
}

}  // namespace

bool verified_by_twin(const Case& work) {
  return work.device == DeviceKind::vgpu && work.execute == Execute::shape;
}

Case with_small_batch(const Case& work) {
  const std::int64_t pieces = static_cast<std::int64_t>(work.world_size()) * work.accumulation;
  Case small = work;
  small.batch = std::min(work.batch, pieces * kSmallSamplesPerGpu + work.batch % pieces);
  return small;
}

std::string verification_group(const Case& work) {
  Case group = checked_case(work);
  group.scenario.clear();
  group.tags.clear();
  group.steps = group.warmup = 0;
  group.host = HostProfile::cpp;
  group.reference_only = false;
  if (verified_by_twin(work)) {
    group.machine.clear();
    group.device_memory_bytes = 0;
    if (group.device == DeviceKind::vgpu) {
      for (std::size_t i = 0; i < group.gpus.size(); ++i) group.gpus[i] = static_cast<int>(i);
    }
  }
  return case_to_json(group);
}

Job verify_job(const Case& work) {
  Job job;
  job.kind = JobKind::verify;
  job.work = checked_case(work);
  job.twin = verified_by_twin(work);
  job.steps = kVerifySteps;
  return job;
}

Job reference_job(const Case& work) {
  Job job = verify_job(work);
  job.kind = JobKind::reference;
  job.chunks = strategy_chunks(job.work);
  // The reference depends on the samples and the chunks only; say so, to share it.
  job.work.strategy = Strategy::single;
  job.work.gpus.resize(1);
  job.work.ddp = DdpOptions{};
  job.work.no_sync = true;
  return job;
}

std::vector<std::int64_t> strategy_chunks(const Case& work) {
  std::vector<std::int64_t> chunks;
  for (int micro = 0; micro < work.accumulation; ++micro) {
    const std::int64_t samples = share(work.batch, micro, work.accumulation);
    switch (work.strategy) {
      case Strategy::single:
        chunks.push_back(samples);
        break;
      case Strategy::data_parallel:
      case Strategy::libtorch_data_parallel:
        append_torch_chunks(samples, work.world_size(), chunks);
        break;
      case Strategy::distributed:
        for (int rank = 0; rank < work.world_size(); ++rank) {
          chunks.push_back(share(samples, rank, work.world_size()));
        }
        break;
    }
  }
  return chunks;
}

std::vector<std::int64_t> samples_per_rank(const Case& work) {
  if (work.strategy != Strategy::distributed) return {work.batch};
  std::vector<std::int64_t> samples(static_cast<std::size_t>(work.world_size()), 0);
  for (int micro = 0; micro < work.accumulation; ++micro) {
    const std::int64_t size = share(work.batch, micro, work.accumulation);
    for (int rank = 0; rank < work.world_size(); ++rank) {
      samples[static_cast<std::size_t>(rank)] += share(size, rank, work.world_size());
    }
  }
  return samples;
}

double rounding_tolerance(int step) {
  return kUnitRoundoff * kFirstStepRoundoffs * std::pow(kGrowthPerStep, std::max(0, step - 1));
}

Verdict compare(const std::vector<Fingerprint>& ranks, const Fingerprint& reference,
                const std::vector<std::int64_t>& rank_samples) {
  Comparison comparison;
  for (const Fingerprint& rank : ranks) {
    if (!same_form(rank, reference) || ranks.size() != rank_samples.size()) {
      comparison.fail("the run and its single-device reference report different parameters");
      return comparison.finish();
    }
  }
  if (ranks.empty()) comparison.fail("no rank reported a fingerprint");
  if (ranks.empty()) return comparison.finish();
  compare_with_reference(ranks, reference, rank_samples, comparison);
  compare_ranks(ranks, comparison);
  return comparison.finish();
}

}  // namespace bench
