#include "simulator/replay.hpp"

#include "bench/core/strategy.hpp"
#include "simulator/graph_edit.hpp"
#include "simulator/published_csv.hpp"

#include <algorithm>
#include <cmath>
#include <span>

namespace bench::simulator {

std::span<const EmbeddedText> embedded_replay();

namespace {

constexpr double kNsPerMs = 1e6;
constexpr std::size_t kColumns = 14;
constexpr std::size_t kUnseenColumns = kColumns + 2;  // with a precision and a length
// An image of the published classifiers: 3 x 224 x 224 float32.
constexpr std::uint64_t kImageBytes = 3 * 224 * 224 * 4;

PublishedStep step_of(const std::vector<std::string>& f) {
  PublishedStep step;
  step.group = f[0];
  step.machine = f[1];
  step.host = parse_host_profile(f[2]).value();
  step.model = f[3];
  step.strategy = parse_strategy(f[4]).value();
  step.gpus = std::stoi(f[5]);
  step.batch_per_gpu = std::stoi(f[6]);
  if (!f[7].empty()) step.bucket_mb = std::stod(f[7]);
  step.optimizer = f[8] != "no";
  step.adam = f[8] == "adam";
  step.pageable_input = f[9] == "host";
  step.single_ms = std::stod(f[10]);
  step.step_ms = std::stod(f[11]);
  step.apart = f[12];
  step.source = f[13];
  step.unseen = f.size() == kUnseenColumns;
  if (!step.unseen) return step;
  step.precision = parse_precision(f[kColumns]).value();
  if (!f[kColumns + 1].empty()) step.tokens = std::stoi(f[kColumns + 1]);
  return step;
}

std::vector<PublishedStep> read_steps() {
  std::vector<PublishedStep> steps;
  for (const EmbeddedText& file : embedded_replay()) {
    const std::size_t columns = file.name == "unseen.csv" ? kUnseenColumns : kColumns;
    for (const auto& fields : csv_rows(file, columns)) steps.push_back(step_of(fields));
  }
  return steps;
}

OperationGraph as_published(const PublishedStep& row, OperationGraph graph) {
  if (!row.optimizer) graph = without_phase(graph, Phase::optimizer);
  graph = with_precision(graph, row.precision);
  if (!row.pageable_input) return graph;
  return with_pageable_input(graph, kImageBytes * static_cast<std::uint64_t>(row.batch_per_gpu));
}

void add(ReplaySummary& summary, const Replayed& row) {
  const double error = row.relative_error();
  ++summary.rows;
  summary.mean_error += std::abs(error);
  summary.bias += error;
  summary.worst_error = std::max(summary.worst_error, std::abs(error));
  summary.mean_unanchored_error += std::abs(row.unanchored_ratio_error());
}

}  // namespace

Case PublishedStep::case_of_row() const {
  Case work;
  work.scenario = "validate";
  work.model.name = model;
  if (tokens) work.model.input_shape = {*tokens};
  work.strategy = strategy;
  work.gpus.clear();
  for (int i = 0; i < gpus; ++i) work.gpus.push_back(i);
  work.batch = static_cast<std::int64_t>(batch_per_gpu) * gpus;
  work.ddp.bucket_cap_mb = bucket_mb;
  work.host = host;
  work.machine = machine;
  if (adam) work.optimizer.name = "adam";
  return work;
}

Case PublishedStep::case_of_single() const {
  Case work = case_of_row();
  work.strategy = Strategy::single;
  work.gpus = {0};
  work.batch = batch_per_gpu;
  work.ddp.bucket_cap_mb.reset();
  return work;
}

const std::vector<PublishedStep>& published_steps() {
  static const std::vector<PublishedStep> steps = read_steps();
  return steps;
}

Replayed replay(const PublishedStep& row, const OperationGraph& single, const OperationGraph& graph,
                const FittedConstants& constants, const std::optional<Anchor>& known) {
  const Machine machine = load_machine(row.machine);
  const OperationGraph one = as_published(row, single);
  const OperationGraph all = as_published(row, graph);
  SimulationOptions options;
  options.host = row.host;
  options.keep_intervals = false;
  options.replica_scale = constants.replica_scale;
  options.rank_jitter = constants.rank_jitter;
  auto step_ms = [&](const OperationGraph& which) {
    return static_cast<double>(simulate(which, machine, options).timeline.step_ns) / kNsPerMs;
  };
  Replayed result;
  result.published = &row;
  result.unanchored_single_ms = step_ms(one);
  if (row.strategy == Strategy::distributed) options.world_size = row.gpus;
  result.unanchored_ms = step_ms(all);
  result.anchor =
      known ? *known : anchor_to_single(one, machine, options, row.single_ms * kNsPerMs);
  options.kernel_scale = result.anchor.kernel_scale;
  options.host_scale = result.anchor.host_scale;
  result.predicted_ms = step_ms(all);
  return result;
}

std::vector<ReplaySummary> summarize(const std::vector<Replayed>& rows) {
  std::vector<ReplaySummary> summaries;
  ReplaySummary total;
  total.group = "all";
  for (const Replayed& row : rows) {
    if (!row.published->apart.empty()) continue;
    auto found = std::find_if(summaries.begin(), summaries.end(), [&](const ReplaySummary& s) {
      return s.group == row.published->group;
    });
    if (found == summaries.end()) {
      summaries.push_back({row.published->group});
      found = summaries.end() - 1;
    }
    add(*found, row);
    add(total, row);
  }
  summaries.push_back(total);
  for (ReplaySummary& summary : summaries) {
    if (summary.rows == 0) continue;
    summary.mean_error /= summary.rows;
    summary.bias /= summary.rows;
    summary.mean_unanchored_error /= summary.rows;
  }
  return summaries;
}

}  // namespace bench::simulator
