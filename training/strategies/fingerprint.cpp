#include "training/strategies/fingerprint.hpp"

#include <cmath>

namespace bench::training {
namespace {

constexpr int kProjections = 4;

// splitmix64: a full-period generator whose every output is well mixed, so that neighbouring seeds
// give unrelated signs (Steele, Lea and Flood, OOPSLA 2014).
std::uint64_t next_random(std::uint64_t& state) {
  std::uint64_t mixed = (state += 0x9E3779B97F4A7C15);
  mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9;
  mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EB;
  return mixed ^ (mixed >> 31);
}

at::Tensor host_doubles(const at::Tensor& tensor) {
  return tensor.detach().to(at::kCPU).to(at::kDouble).contiguous().view(-1);
}

}  // namespace

ParameterDigest digest_parameter(const std::string& name, std::uint64_t index,
                                 const at::Tensor& start, const at::Tensor& now) {
  const auto values = host_doubles(now);
  const auto starts = host_doubles(start);
  const auto* value = values.const_data_ptr<double>();
  const auto* first = starts.const_data_ptr<double>();
  ParameterDigest digest;
  digest.name = name;
  digest.numel = values.numel();
  std::uint64_t state = index;
  std::uint64_t bits = 0;
  for (std::int64_t i = 0; i < digest.numel; ++i) {
    constexpr std::int64_t kElementsPerDraw = 64 / kProjections;
    if (i % kElementsPerDraw == 0) bits = next_random(state);
    const double change = value[i] - first[i];
    digest.norm += value[i] * value[i];
    digest.change_norm += change * change;
    for (auto& projection : digest.change_projection) {
      projection += (bits & 1) != 0 ? change : -change;
      bits >>= 1;
    }
  }
  digest.norm = std::sqrt(digest.norm);
  digest.change_norm = std::sqrt(digest.change_norm);
  return digest;
}

}  // namespace bench::training
