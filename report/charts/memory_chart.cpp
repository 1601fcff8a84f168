// Peak memory of each GPU, stacked by category, DP over DDP.
#include "bench/core/strategy.hpp"
#include "bench/core/units.hpp"
#include "report/case_tables.hpp"
#include "report/charts/axis.hpp"
#include "report/charts/focus.hpp"
#include "report/charts/run_charts.hpp"
#include "report/charts/stacked_bars.hpp"
#include "simulator/operation_graph.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace bench::report {
namespace {

constexpr std::size_t kMaxRows = 8;  // GPUs drawn per case
// A limit this many times beyond the longest bar would only make the bars short.
constexpr double kLimitOutOfSight = 4;

const char* category_name(int i) {
  return simulator::memory_category_name(static_cast<simulator::MemoryCategory>(i));
}

BarRow memory_row(const CaseResult& result, const DeviceMemory& memory) {
  BarRow row;
  row.label = fmt::format("{} GPU {}", strategy_title(result.work.strategy), memory.device);
  std::uint64_t known = 0;
  for (int i = 0; i < simulator::kMemoryCategoryCount; ++i) {
    const auto found = memory.by_category.find(category_name(i));
    const std::uint64_t bytes = found == memory.by_category.end() ? 0 : found->second;
    known += bytes;
    row.values.push_back(static_cast<double>(bytes));
  }
  // Real allocators give a peak without categories: all of it is "other".
  if (known < memory.peak_bytes)
    row.values.back() += static_cast<double>(memory.peak_bytes - known);
  row.total = format_bytes(memory.peak_bytes);
  return row;
}

// The focus' cases; after a search for the largest batch each strategy at its own.
std::vector<const CaseResult*> cases_of(const RunResult& run, const Comparison& c) {
  std::vector<const CaseResult*> cases = chart_cases(run, c.model);
  std::erase_if(cases, [&](const CaseResult* r) {
    const int gpus = r->work.strategy == Strategy::single ? 1 : c.gpus;
    return !is_search_result(*r) || r->work.world_size() != gpus;
  });
  if (!cases.empty()) return cases;
  for (const CaseResult* r : {c.data_parallel, c.libtorch_data_parallel, c.distributed}) {
    if (r != nullptr) cases.push_back(r);
  }
  if (cases.empty() && c.single != nullptr) cases.push_back(c.single);
  return cases;
}

double largest_peak(const std::vector<const CaseResult*>& cases) {
  std::uint64_t most = 0;
  for (const CaseResult* r : cases) {
    for (const DeviceMemory& m : r->memory) most = std::max(most, m.peak_bytes);
  }
  return static_cast<double>(most);
}

}  // namespace

Chart memory_chart(const RunResult& run, const std::string& model) {
  const Focus focus = focus_of(run, model);
  StackedBars chart;
  chart.format = axis_bytes;
  chart.binary_axis = true;
  for (int i = 0; i < simulator::kMemoryCategoryCount; ++i) {
    chart.series.push_back(
        {category_title(category_name(i)), std::string("m-") + category_name(i)});
  }
  const auto cases = cases_of(run, focus.at);
  for (const CaseResult* r : cases) {
    for (std::size_t i = 0; i < std::min(kMaxRows, r->memory.size()); ++i) {
      chart.rows.push_back(memory_row(*r, r->memory[i]));
      chart.rows.back().gap_before = i == 0 && chart.rows.size() > 1;
    }
    chart.limit = std::max(chart.limit, static_cast<double>(r->work.device_memory_bytes));
  }
  if (chart.rows.empty()) return {};
  if (chart.limit > kLimitOutOfSight * largest_peak(cases)) chart.limit = 0;
  chart.limit_title = "GPU memory";
  chart.label = fmt::format("Peak memory per GPU of {} by category", model);
  const std::string fixed = is_search_result(*cases.front())
                                ? "each strategy at its largest batch"
                                : fmt::format("global batch {}", focus.at.batch);
  return {"Memory per GPU at the peak", focus.gpus_text() + ", " + fixed, draw(chart)};
}

}  // namespace bench::report
