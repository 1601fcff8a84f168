#include "simulator/ratio_replay.hpp"

#include "bench/core/strategy.hpp"
#include "simulator/anchor.hpp"
#include "simulator/published_csv.hpp"
#include "simulator/replay.hpp"

#include <span>

namespace bench::simulator {

std::span<const EmbeddedText> embedded_ratios();

namespace {

constexpr double kNsPerMs = 1e6;
constexpr std::size_t kColumns = 17;

RatioSide side_of(const std::vector<std::string>& f, std::size_t at) {
  return {f[at], parse_strategy(f[at + 1]).value(), std::stoi(f[at + 2])};
}

PublishedRatio ratio_of(const std::vector<std::string>& f) {
  PublishedRatio row;
  row.group = f[0];
  row.question = f[1];
  row.side = side_of(f, 2);
  row.base = side_of(f, 5);
  row.host = parse_host_profile(f[8]).value();
  row.model = f[9];
  row.batch_per_gpu = std::stoi(f[10]);
  row.adam = f[11] == "adam";
  row.find_unused_parameters = f[12] == "yes";
  row.ratio = std::stod(f[13]);
  if (!f[14].empty()) row.base_ms = std::stod(f[14]);
  row.tuned = f[15];
  row.source = f[16];
  return row;
}

std::vector<PublishedRatio> read_ratios() {
  std::vector<PublishedRatio> rows;
  for (const EmbeddedText& file : embedded_ratios()) {
    for (const auto& fields : csv_rows(file, kColumns)) rows.push_back(ratio_of(fields));
  }
  return rows;
}

SimulationOptions options_of(const PublishedRatio& row, const RatioSide& which) {
  SimulationOptions options;
  options.host = row.host;
  options.keep_intervals = false;
  if (which.strategy == Strategy::distributed) options.world_size = which.gpus;
  return options;
}

double step_ns(const OperationGraph& graph, const RatioSide& which, SimulationOptions options,
               const Anchor& anchor) {
  options.kernel_scale = anchor.kernel_scale;
  options.host_scale = anchor.host_scale;
  const auto simulated = simulate(graph, load_machine(which.machine), options);
  return static_cast<double>(simulated.timeline.step_ns);
}

}  // namespace

Case PublishedRatio::case_of(const RatioSide& which) const {
  PublishedStep step;
  step.machine = which.machine;
  step.host = host;
  step.model = model;
  step.strategy = which.strategy;
  step.gpus = which.gpus;
  step.batch_per_gpu = batch_per_gpu;
  step.adam = adam;
  Case work = step.case_of_row();
  work.ddp.find_unused_parameters =
      find_unused_parameters && which.strategy == Strategy::distributed;
  return work;
}

const std::vector<PublishedRatio>& published_ratios() {
  static const std::vector<PublishedRatio> rows = read_ratios();
  return rows;
}

ReplayedRatio replay_ratio(const PublishedRatio& row, const OperationGraph& side,
                           const OperationGraph& base) {
  const SimulationOptions of_side = options_of(row, row.side);
  const SimulationOptions of_base = options_of(row, row.base);
  ReplayedRatio result;
  result.published = &row;
  result.unanchored = step_ns(side, row.side, of_side, {}) / step_ns(base, row.base, of_base, {});
  if (!row.base_ms) return result;
  const double base_ns = *row.base_ms * kNsPerMs;
  const Anchor anchor = anchor_to_single(base, load_machine(row.base.machine), of_base, base_ns);
  result.anchored = step_ns(side, row.side, of_side, anchor) / base_ns;
  return result;
}

}  // namespace bench::simulator
