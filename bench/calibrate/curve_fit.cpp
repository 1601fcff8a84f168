#include "bench/calibrate/curve_fit.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace bench {
namespace {

// A knot for every factor of 2.5 in size: finer than kernels' efficiency changes, coarse enough
// that most have several shapes to rest on.
const double kKnotStep = std::log(2.5);
// Weight of a bend between three knots against one measured point: decides where no point does.
constexpr double kSmoothness = 0.02;
// Residuals beyond this (natural logarithm: 25 %) count linearly, so that a shape for which cuDNN
// has no good kernel does not pull the curve.
constexpr double kHuber = 0.22;
constexpr int kRounds = 12;
// Keeps curves legal after their figures are rounded for the file.
constexpr double kMargin = 0.998;

using Matrix = std::vector<std::vector<double>>;

// Gaussian elimination with pivoting; the matrix is small, symmetric and regular.
std::vector<double> solve(Matrix a, std::vector<double> b) {
  const std::size_t n = b.size();
  for (std::size_t column = 0; column < n; ++column) {
    std::size_t pivot = column;
    for (std::size_t row = column + 1; row < n; ++row) {
      if (std::abs(a[row][column]) > std::abs(a[pivot][column])) pivot = row;
    }
    std::swap(a[column], a[pivot]);
    std::swap(b[column], b[pivot]);
    for (std::size_t row = column + 1; row < n; ++row) {
      const double factor = a[row][column] / a[column][column];
      for (std::size_t k = column; k < n; ++k) a[row][k] -= factor * a[column][k];
      b[row] -= factor * b[column];
    }
  }
  for (std::size_t row = n; row-- > 0;) {
    for (std::size_t k = row + 1; k < n; ++k) b[row] -= a[row][k] * b[k];
    b[row] /= a[row][row];
  }
  return b;
}

// Where a point lies between the knots: between `left` and the next, `share` of the way.
struct Place {
  std::size_t left = 0;
  double share = 0;
};

class PiecewiseFit {
 public:
  explicit PiecewiseFit(const std::vector<EfficiencyPoint>& points) {
    double least = std::log(points.front().x);
    double most = least;
    for (const EfficiencyPoint& p : points) {
      least = std::min(least, std::log(p.x));
      most = std::max(most, std::log(p.x));
    }
    const double span = most - least;
    const auto steps = static_cast<std::size_t>(std::max(1.0, std::round(span / kKnotStep)));
    step_ = span > 0 ? span / static_cast<double>(steps) : 1;
    for (std::size_t i = 0; i <= steps; ++i) {
      knots_.push_back(least + step_ * static_cast<double>(i));
    }
    for (const EfficiencyPoint& p : points) {
      const double at = (std::log(p.x) - least) / step_;
      const auto left = std::min(static_cast<std::size_t>(std::max(at, 0.0)), knots_.size() - 2);
      places_.push_back({left, at - static_cast<double>(left)});
      values_.push_back(std::log(p.y));
    }
  }

  simulator::EfficiencyCurve fit() {
    std::vector<double> weights(values_.size(), 1);
    for (int round = 0; round < kRounds; ++round) {
      heights_ = weighted(weights);
      for (std::size_t i = 0; i < values_.size(); ++i) {
        const double residual = std::abs(values_[i] - height_at(places_[i]));
        weights[i] = residual <= kHuber ? 1 : kHuber / residual;
      }
    }
    return legal();
  }

 private:
  double height_at(const Place& p) const {
    return heights_[p.left] * (1 - p.share) + heights_[p.left + 1] * p.share;
  }

  std::vector<double> weighted(const std::vector<double>& weights) const {
    const std::size_t n = knots_.size();
    Matrix a(n, std::vector<double>(n, 0));
    std::vector<double> b(n, 0);
    for (std::size_t i = 0; i < values_.size(); ++i) {
      const std::size_t left = places_[i].left;
      const double shares[] = {1 - places_[i].share, places_[i].share};
      for (std::size_t j = 0; j < 2; ++j) {
        for (std::size_t k = 0; k < 2; ++k)
          a[left + j][left + k] += weights[i] * shares[j] * shares[k];
        b[left + j] += weights[i] * shares[j] * values_[i];
      }
    }
    constexpr double kBend[] = {1, -2, 1};
    for (std::size_t i = 0; i + 2 < n; ++i) {
      for (std::size_t j = 0; j < 3; ++j) {
        for (std::size_t k = 0; k < 3; ++k) a[i + j][i + k] += kSmoothness * kBend[j] * kBend[k];
      }
    }
    // Holds up knots that nothing else decides.
    for (std::size_t i = 0; i < n; ++i) a[i][i] += 1e-9;
    return solve(std::move(a), std::move(b));
  }

  simulator::EfficiencyCurve legal() const {
    simulator::EfficiencyCurve curve;
    double height = 0;
    for (std::size_t i = 0; i < knots_.size(); ++i) {
      const double most = i == 0 ? 0 : std::min(0.0, height + kMargin * step_);
      height = std::min(heights_[i], most);
      curve.points.emplace_back(std::exp(knots_[i]), std::exp(height));
    }
    return curve;
  }

  double step_ = 1;
  std::vector<double> knots_;
  std::vector<double> heights_;
  std::vector<Place> places_;
  std::vector<double> values_;
};

}  // namespace

simulator::EfficiencyCurve fit_efficiency(const std::vector<EfficiencyPoint>& points) {
  if (points.empty()) return {};
  return PiecewiseFit(points).fit();
}

double best_positive(double least, double most, const std::function<double(double)>& loss) {
  constexpr int kGrid = 24;
  constexpr int kRefinements = 4;
  double low = std::log(least);
  double high = std::log(most);
  double best = low;
  for (int round = 0; round < kRefinements; ++round) {
    const double step = (high - low) / kGrid;
    double best_loss = std::numeric_limits<double>::infinity();
    const double from = low;
    for (int i = 0; i <= kGrid; ++i) {
      const double here = loss(std::exp(from + step * i));
      if (here >= best_loss) continue;
      best_loss = here;
      best = from + step * i;
    }
    low = std::max(std::log(least), best - step);
    high = std::min(std::log(most), best + step);
  }
  return std::exp(best);
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

}  // namespace bench
