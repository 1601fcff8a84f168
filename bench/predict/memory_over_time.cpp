#include "bench/predict/memory_over_time.hpp"

#include "bench/predict/prediction.hpp"
#include "report/case_tables.hpp"
#include "report/charts/axis.hpp"
#include "report/charts/stacked_areas.hpp"
#include "report/charts/svg.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace bench {
namespace {

constexpr double kNsPerMs = 1e6;
constexpr std::size_t kBlocks = 60;
constexpr double kAfterwards = 1.05;  // a little of what stays until the step ends
constexpr const char* kHeights[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

std::uint64_t most_in_use(const std::vector<profiling::MemorySample>& samples) {
  std::uint64_t most = 0;
  for (const auto& sample : samples) most = std::max(most, sample.bytes);
  return most;
}

}  // namespace

std::vector<profiling::MemorySample> memory_over_time(const profiling::Timeline& timeline,
                                                      std::int32_t device, std::size_t most) {
  std::vector<profiling::MemorySample> kept;
  std::int64_t end_ns = 1;
  for (const auto& sample : timeline.memory) {
    if (sample.device == device) end_ns = std::max(end_ns, sample.time_ns);
  }
  const auto stretch_of = [&](const profiling::MemorySample& sample) {
    const double share = static_cast<double>(sample.time_ns) / static_cast<double>(end_ns);
    return std::min(most - 1, static_cast<std::size_t>(share * static_cast<double>(most)));
  };
  for (const profiling::MemorySample& sample : timeline.memory) {
    if (sample.device != device) continue;
    if (kept.empty() || stretch_of(kept.back()) != stretch_of(sample)) {
      kept.push_back(sample);
    } else if (sample.bytes > kept.back().bytes) {
      kept.back() = sample;
    }
  }
  return kept;
}

std::string memory_blocks(const Prediction& prediction) {
  const auto& samples = prediction.memory_over_time;
  const std::uint64_t most = most_in_use(samples);
  if (most == 0) return "";
  std::string text;
  std::size_t at = 0;
  const auto all_ns = static_cast<double>(samples.back().time_ns);
  for (std::size_t block = 0; block < kBlocks; ++block) {
    const double end_ns = all_ns * static_cast<double>(block + 1) / kBlocks;
    std::uint64_t bytes = samples[at].bytes;
    while (at + 1 < samples.size() && static_cast<double>(samples[at + 1].time_ns) < end_ns) {
      bytes = std::max(bytes, samples[++at].bytes);
    }
    const double share = static_cast<double>(bytes) / static_cast<double>(most);
    text += kHeights[std::min<std::size_t>(std::size(kHeights) - 1,
                                           static_cast<std::size_t>(share * std::size(kHeights)))];
  }
  return text;
}

std::string memory_page(const Prediction& prediction, const std::string& title) {
  if (prediction.memory_over_time.empty()) return "";
  report::StackedAreas areas;
  const double issued_ms =
      static_cast<double>(prediction.memory_over_time.back().time_ns) / kNsPerMs;
  areas.label = "Memory in use on the primary GPU over the step of " + title;
  areas.end = std::min(prediction.step_ms, issued_ms * kAfterwards);
  areas.format_x = report::axis_ms;
  areas.format_y = report::axis_bytes;
  for (int i = 0; i < simulator::kMemoryCategoryCount; ++i) {
    const std::string name =
        simulator::memory_category_name(static_cast<simulator::MemoryCategory>(i));
    areas.series.push_back({report::category_title(name), "m-" + name, {}});
  }
  for (const profiling::MemorySample& sample : prediction.memory_over_time) {
    areas.x.push_back(static_cast<double>(sample.time_ns) / kNsPerMs);
    for (std::size_t i = 0; i < areas.series.size(); ++i) {
      areas.series[i].values.push_back(static_cast<double>(sample.by_category[i]));
    }
  }
  return "<h3>" + report::escape_html(title) + "</h3>\n" +
         fmt::format("<p>It last changes after {} of {}.</p>\n", report::axis_ms(issued_ms),
                     report::axis_ms(prediction.step_ms)) +
         draw(areas);
}

}  // namespace bench
