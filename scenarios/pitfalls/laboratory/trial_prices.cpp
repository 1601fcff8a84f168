#include "scenarios/pitfalls/laboratory/trial_prices.hpp"

#include <algorithm>
#include <cmath>

namespace bench::pitfalls {

std::string first_sentence(const std::string& error) {
  const std::size_t end = std::min(error.find(". "), error.find('\n'));
  return error.empty() ? error : "RuntimeError: " + error.substr(0, end);
}

Price price_of_crash(const RunEvidence& broken, const RunEvidence& cured, std::string_view words) {
  Price price;
  const std::string error = broken.error_with(words);
  price.reproduced = !error.empty();
  price.gone = cured.first("error") == nullptr && cured.number("steps") > broken.number("steps");
  price.cost = broken.number("steps");
  price.unit = price.cost == 1 ? "step before the crash" : "steps before the crash";
  price.seen = first_sentence(error);
  return price;
}

std::vector<double> rank_values(const RunEvidence& run, std::string_view key) {
  std::vector<double> values;
  for (const Json& value : run.of_every_rank(key)) {
    if (!value.is_number()) return {};
    values.push_back(value.get<double>());
  }
  return values;
}

std::string rank_figures(const RunEvidence& run, std::string_view key, int decimals) {
  std::string text;
  for (const double value : rank_values(run, key))
    text += (text.empty() ? "" : ", ") + figure(value, decimals);
  return text;
}

double rank_spread(const RunEvidence& run, std::string_view key) {
  const std::vector<double> values = rank_values(run, key);
  if (values.empty()) return 0;
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  return *most - *least;
}

bool ranks_differ(const RunEvidence& run, std::string_view key) {
  // Ranks that do the same arithmetic in the same order agree to the bit; reductions may not.
  constexpr double kRounding = 1e-5;
  double size = 0;
  for (const double value : rank_values(run, key)) size = std::max(size, std::fabs(value));
  return rank_spread(run, key) > kRounding * size;
}

}  // namespace bench::pitfalls
