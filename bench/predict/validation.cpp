#include "bench/predict/validation.hpp"

#include "bench/core/model_catalog.hpp"
#include "bench/core/strategy.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <tuple>

namespace bench {
namespace {

namespace fs = std::filesystem;
using simulator::PublishedStep;
using simulator::Replayed;

constexpr double kGapThatCounts = 0.05;

// The published classifiers read ImageNet's images.
std::optional<ModelSpec> model_of(const PublishedStep& row, const fs::path& models) {
  ModelSpec spec = row.case_of_row().model;
  if (find_model(row.model) != nullptr) return spec;
  const fs::path file = models / (row.model + ".pt");
  std::error_code error;
  if (models.empty() || !fs::is_regular_file(file, error)) return std::nullopt;
  spec.file = fs::absolute(file).lexically_normal().string();
  spec.input_shape = {3, 224, 224};
  spec.classes = 1000;
  return spec;
}

double gap(double a_ms, double b_ms) { return std::abs(a_ms - b_ms) / std::min(a_ms, b_ms); }

std::string row_name(const PublishedStep& row) {
  std::string name = row.model + " " + strategy_name(row.strategy) + " on " +
                     std::to_string(row.gpus) + " GPUs of " + row.machine;
  if (row.bucket_mb) name += ", buckets of " + std::to_string(std::lround(*row.bucket_mb)) + " MB";
  return name;
}

// Samples per second per published row, so that rows of different GPU counts can be compared.
double ms_per_sample(const PublishedStep& row, double step_ms) {
  return step_ms / (static_cast<double>(row.batch_per_gpu) * row.gpus);
}

bool comparable(const PublishedStep& a, const PublishedStep& b) {
  const bool same = a.model == b.model && a.batch_per_gpu == b.batch_per_gpu && a.apart.empty() &&
                    b.apart.empty() && a.single_ms == b.single_ms;
  return same && (a.group == b.group || a.machine == b.machine);
}

void compare(const Replayed& a, const Replayed& b, OrderCheck& check) {
  const PublishedStep& first = *a.published;
  const PublishedStep& second = *b.published;
  const double published_a = ms_per_sample(first, first.step_ms);
  const double published_b = ms_per_sample(second, second.step_ms);
  if (gap(published_a, published_b) <= kGapThatCounts) return;
  ++check.pairs;
  const bool predicted =
      ms_per_sample(first, a.predicted_ms) < ms_per_sample(second, b.predicted_ms);
  if (predicted == (published_a < published_b)) {
    ++check.agreed;
  } else {
    check.disagreements.push_back(row_name(first) + " against " + row_name(second));
  }
}

// One GPU against the row: does it pay at all?
void compare_with_single(const Replayed& row, OrderCheck& check) {
  const PublishedStep& p = *row.published;
  const double alone = p.single_ms / p.batch_per_gpu;
  const double published = ms_per_sample(p, p.step_ms);
  if (!p.apart.empty() || p.gpus == 1 || gap(alone, published) <= kGapThatCounts) return;
  ++check.pairs;
  if ((ms_per_sample(p, row.predicted_ms) < alone) == (published < alone)) {
    ++check.agreed;
  } else {
    check.disagreements.push_back(row_name(p) + " against one GPU");
  }
}

using simulator::StepClass;

std::map<StepClass, std::vector<double>> errors_by_class(const Validation& validation) {
  std::map<StepClass, std::vector<double>> errors;
  std::set<std::tuple<std::string, std::string, int, double>> singles;  // rows share theirs
  for (const auto* rows : {&validation.rows, &validation.unseen}) {
    for (const Replayed& row : *rows) {
      const PublishedStep& p = *row.published;
      if (!p.apart.empty()) continue;
      errors[{p.strategy, true}].push_back(std::abs(row.relative_error()));
      errors[{p.strategy, false}].push_back(std::abs(row.unanchored_ms / p.step_ms - 1));
      if (!singles.insert({p.group, p.model, p.batch_per_gpu, p.single_ms}).second) continue;
      const double error = std::abs(row.unanchored_single_ms / p.single_ms - 1);
      errors[{Strategy::single, false}].push_back(error);
    }
  }
  return errors;
}

// Of at least one value: the smallest that `share` of them do not exceed.
double quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  const auto at = static_cast<std::size_t>(std::ceil(share * static_cast<double>(values.size())));
  return values[std::max<std::size_t>(at, 1) - 1];
}

}  // namespace

Validation validate(RecordingStore& store, const fs::path& models, const WantedRows& wanted) {
  Validation validation;
  std::vector<ValidationWork>& work = validation.work;
  std::vector<Case> needed;
  for (const PublishedStep& row : simulator::published_steps()) {
    if (wanted && !wanted(row.group, row.source)) continue;
    const auto spec = model_of(row, models);
    if (!spec) {
      validation.skipped.emplace_back(
          &row, "the model is not built in and --models has no " + row.model + ".pt");
      continue;
    }
    work.push_back({&row, row.case_of_row(), row.case_of_single(), {}});
    work.back().all.model = work.back().single.model = *spec;
    needed.push_back(work.back().all);
    needed.push_back(work.back().single);
  }
  store.prepare(needed);
  for (ValidationWork& item : work) {
    auto& rows = item.row->unseen ? validation.unseen : validation.rows;
    rows.push_back(simulator::replay(*item.row, *store.graph(item.single), *store.graph(item.all)));
    item.anchor = rows.back().anchor;
  }
  std::erase_if(work, [](const ValidationWork& item) { return item.row->unseen; });
  validation.held_out = leave_one_machine_out(store, work);
  validation.ratios = replay_ratios(store, wanted);
  return validation;
}

std::vector<simulator::ReplayedRatio> replay_ratios(RecordingStore& store,
                                                    const WantedRows& wanted) {
  std::vector<const simulator::PublishedRatio*> rows;
  std::vector<Case> needed;
  for (const simulator::PublishedRatio& row : simulator::published_ratios()) {
    if (wanted && !wanted(row.group, row.source)) continue;
    rows.push_back(&row);
    needed.push_back(row.case_of(row.side));
    needed.push_back(row.case_of(row.base));
  }
  store.prepare(needed);
  std::vector<simulator::ReplayedRatio> ratios;
  for (const simulator::PublishedRatio* row : rows) {
    ratios.push_back(replay_ratio(*row, *store.graph(row->case_of(row->side)),
                                  *store.graph(row->case_of(row->base))));
  }
  return ratios;
}

std::vector<BandCheck> check_bands(const Validation& validation) {
  std::vector<BandCheck> bands;
  for (const auto& [kind, errors] : errors_by_class(validation)) {
    BandCheck band;
    band.kind = kind;
    band.rows = static_cast<int>(errors.size());
    band.median = quantile(errors, 0.5);
    band.p90 = quantile(errors, 0.9);
    band.used = simulator::published_band(kind);
    bands.push_back(band);
  }
  return bands;
}

OrderCheck check_order(const std::vector<Replayed>& rows) {
  OrderCheck check;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    compare_with_single(rows[i], check);
    for (std::size_t j = 0; j < i; ++j) {
      if (comparable(*rows[i].published, *rows[j].published)) compare(rows[i], rows[j], check);
    }
  }
  return check;
}

}  // namespace bench
