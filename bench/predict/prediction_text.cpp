#include "bench/predict/prediction_text.hpp"

#include "bench/core/strategy.hpp"
#include "bench/core/units.hpp"
#include "report/text_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace bench {
namespace {

constexpr int kBarWidth = 50;
// GPUs pay as long as those added give at least this share of what they would give alone.
constexpr double kPays = 0.5;

const char* short_name(Strategy strategy) {
  switch (strategy) {
    case Strategy::single:
      return "single";
    case Strategy::data_parallel:
      return "DP";
    case Strategy::libtorch_data_parallel:
      return "LibTorch DP";
    case Strategy::distributed:
      return "DDP";
  }
  return "?";
}

std::string ms(double value) {
  return value >= 100 ? fmt::format("{:.0f} ms", value) : fmt::format("{:.3g} ms", value);
}

std::string options_text(const Question& question) {
  std::string text;
  auto add = [&](const std::string& part) { text += (text.empty() ? "" : " ") + part; };
  for (const auto& [key, value] : question.work.tags) add(key + ":" + value);
  if (question.precision != simulator::Precision::float32) {
    add(precision_name(question.precision));
  }
  if (question.hook != simulator::BucketHook::none) add(bucket_hook_name(question.hook));
  return text;
}

std::string fit_text(const Prediction& prediction) {
  if (prediction.fits()) return "yes";
  for (const MemoryFit& memory : prediction.memory) {
    if (memory.fits) continue;
    const std::string where = memory.node.empty() ? "" : " on " + memory.node;
    return fmt::format("no: {}{}", memory.first_failure, where);
  }
  return "no";
}

report::TextTable figures_table(const std::vector<Prediction>& predictions) {
  report::TextTable table;
  table.columns = {{"model", false, 6},     {"machine", false, 5},   {"strategy", false, 9},
                   {"GPUs", true, 9},       {"batch/GPU", true, 7},  {"options", false, 8},
                   {"step", true, 9},       {"may be off", true, 8}, {"samples/s", true, 8},
                   {"efficiency", true, 7}, {"exposed", true, 6},    {"peak GPU 0", true, 6},
                   {"others", true, 4},     {"fits", false, 7},      {"max batch/GPU", true, 7}};
  for (const Prediction& p : predictions) {
    if (!p.has_figures()) continue;
    const Case& work = p.work();
    table.rows.push_back(
        {work.model.name, work.machine, short_name(work.strategy),
         std::to_string(work.world_size()), std::to_string(work.batch / work.world_size()),
         options_text(p.question), ms(p.step_ms), fmt::format("{:.0f} %", p.error.relative * 100),
         fmt::format("{:.0f}", p.samples_per_second),
         fmt::format("{:.1f} %", p.scaling_efficiency * 100),
         fmt::format("{:.1f} %", 100 * p.exposed_communication_ms / p.step_ms),
         format_bytes(p.memory.at(0).total_bytes()),
         p.memory.size() > 1 ? format_bytes(p.memory[1].total_bytes()) : "-", fit_text(p),
         p.max_batch_per_gpu ? std::to_string(*p.max_batch_per_gpu) : "-"});
  }
  table.drop_empty_columns();
  return table;
}

std::string bar(const Prediction& p, double longest_ms) {
  struct Part {
    double ms;
    const char* mark;
  };
  const Part parts[] = {{p.compute_ms, "█"},
                        {p.exposed_communication_ms + p.exposed_copy_ms, "▓"},
                        {p.host_ms, "▒"},
                        {p.idle_ms, "·"}};
  std::string text;
  double until = 0;
  int drawn = 0;
  for (const Part& part : parts) {
    until += part.ms;
    const int end = static_cast<int>(std::lround(until / longest_ms * kBarWidth));
    for (; drawn < end; ++drawn) text += part.mark;
  }
  return text;
}

std::string bars_text(const std::vector<Prediction>& predictions, bool with_machine) {
  double longest = 0;
  std::size_t width = 0;
  for (const Prediction& p : predictions) {
    if (!p.has_figures()) continue;
    longest = std::max(longest, p.step_ms);
    width = std::max(width, prediction_label(p, with_machine).size());
  }
  std::string text =
      "Where the step goes  (█ compute, ▓ exposed communication and copies, ▒ host, · idle)\n";
  for (const Prediction& p : predictions) {
    if (!p.has_figures()) continue;
    text += fmt::format("  {:<{}}  {} {}\n", prediction_label(p, with_machine), width,
                        bar(p, longest), ms(p.step_ms));
  }
  return text;
}

std::string memory_text(const Prediction& p) {
  std::string text = fmt::format("Memory of {}\n", prediction_label(p, false));
  for (const MemoryFit& memory : p.memory) {
    const std::string where = memory.node.empty() ? "" : " of each " + memory.node;
    text += fmt::format("  GPU {}{}: {} of {}", memory.gpu, where,
                        format_bytes(memory.total_bytes()), format_bytes(memory.capacity_bytes));
    std::vector<std::pair<std::uint64_t, std::string>> parts;
    for (const auto& [category, bytes] : memory.by_category) parts.emplace_back(bytes, category);
    const std::pair<std::uint64_t, const char*> around[] = {
        {memory.cached_bytes(), "held by the allocator beyond that"},
        {memory.context_bytes, "CUDA context"},
        {memory.nccl_bytes, "NCCL's buffers"}};
    for (const auto& [bytes, what] : around) {
      if (bytes > 0) parts.emplace_back(bytes, what);
    }
    std::sort(parts.rbegin(), parts.rend());
    const char* separator = ": ";
    for (const auto& [bytes, category] : parts) {
      text += separator + category + " " + format_bytes(bytes);
      separator = ", ";
    }
    text += memory.fits ? "\n"
                        : fmt::format("; does not fit, first refused: {}\n", memory.first_failure);
  }
  const std::string blocks = memory_blocks(p);
  if (!blocks.empty()) text += "  GPU 0 while the step is issued: " + blocks + "\n";
  return text;
}

std::string waiting_text(const Prediction& p, bool with_machine) {
  if (p.speed_classes.empty()) return "";
  std::string text = "\n" + prediction_label(p, with_machine) + ": ranks of unequal speed\n";
  for (const SpeedClass& speeds : p.speed_classes) {
    if (!speeds.node.empty()) {
      text +=
          fmt::format("  {} on {} compute {:.2f} times as fast as the slowest, wait {} of a step\n",
                      speeds.ranks, speeds.node, speeds.speed, ms(speeds.waits_ms));
      continue;
    }
    text += fmt::format("  {} at {:g} of the GPU's speed wait {} of a step for the slowest\n",
                        speeds.ranks, speeds.speed, ms(speeds.waits_ms));
  }
  return text;
}

std::string provenance_text(const std::vector<Prediction>& predictions,
                            const std::vector<simulator::Machine>& machines,
                            const PredictRequest& request) {
  std::string text = "Made from\n";
  for (const simulator::Machine& machine : machines) {
    text += "  " + machine.title + "\n";
    for (const std::string& line : inputs_of(machine, request.measured_single_ms.has_value())) {
      text += "    " + line + "\n";
    }
  }
  std::string reason;
  for (const Prediction& p : predictions) {
    if (p.has_figures() && p.error.reason.size() > reason.size()) reason = p.error.reason;
  }
  if (!reason.empty()) text += "  error: " + reason + "; docs/accuracy.md has the validation\n";
  return text;
}

// Same model, machine, strategy and options: what differs is the number of GPUs.
std::string series_of(const Prediction& p) {
  const std::string options = options_text(p.question);
  return p.work().model.name + " on " + p.work().machine + ", " + short_name(p.work().strategy) +
         (options.empty() ? "" : " " + options);
}

}  // namespace

std::string prediction_label(const Prediction& p, bool with_machine) {
  const Case& work = p.work();
  std::string label = work.model.name + " ";
  if (with_machine) label += work.machine + " ";
  label += fmt::format("{} {} GPU{} batch {}", short_name(work.strategy), work.world_size(),
                       work.world_size() == 1 ? "" : "s", work.batch);
  const std::string options = options_text(p.question);
  return options.empty() ? label : label + " " + options;
}

std::vector<std::string> paying_sentences(const std::vector<Prediction>& predictions) {
  std::map<std::string, std::vector<const Prediction*>> series;
  for (const Prediction& p : predictions) {
    if (p.has_figures() && p.work().strategy != Strategy::single) {
      series[series_of(p)].push_back(&p);
    }
  }
  std::vector<std::string> sentences;
  for (const auto& [name, points] : series) {
    if (points.size() < 2) continue;
    const Prediction* last = points.front();
    std::string end = "to the end of the sweep";
    for (std::size_t i = 1; i < points.size(); ++i) {
      const Prediction& next = *points[i];
      const int added = next.work().world_size() - last->work().world_size();
      if (added <= 0) continue;
      const double gained = next.samples_per_second - last->samples_per_second;
      const double alone =
          next.samples_per_second / next.scaling_efficiency / next.work().world_size() * added;
      const double share = gained / alone;
      if (share < kPays) {
        end = fmt::format("{} more add {:.0f} % of what they would give alone", added, share * 100);
        break;
      }
      last = &next;
    }
    sentences.push_back(
        fmt::format("{}: pays up to {} GPUs ({}).", name, last->work().world_size(), end));
  }
  return sentences;
}

std::string predictions_text(const std::vector<Prediction>& predictions,
                             const std::vector<simulator::Machine>& machines,
                             const PredictRequest& request) {
  const bool several = machines.size() > 1;
  std::string text = "SIMULATED: predictions, not measurements.\n\n";
  for (const std::string& line : figures_table(predictions).lines(2)) text += line + "\n";
  text += "\n" + bars_text(predictions, several);
  for (const Prediction& p : predictions) {
    if (p.has_figures()) continue;
    text +=
        fmt::format("\nNot predicted: {}: {}\n", prediction_label(p, several), *p.question.cannot);
  }
  for (const Prediction& p : predictions) text += waiting_text(p, several);
  for (const std::string& sentence : paying_sentences(predictions)) text += "\n" + sentence + "\n";
  for (const Prediction& p : predictions) {
    const bool shown = p.has_figures() && (predictions.size() <= 3 || !p.fits());
    if (shown) text += "\n" + memory_text(p);
  }
  return text + "\n" + provenance_text(predictions, machines, request);
}

}  // namespace bench
