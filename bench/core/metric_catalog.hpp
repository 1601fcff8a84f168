// Every metric of results.json as one row: its name, how to print it, which direction is better and
// what it means. Printers format by hint and know no metric by name; docs/metrics.md is generated
// from this table.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace bench {

enum class MetricHint { duration_ms, bytes, ratio, factor, rate, count, flag };
enum class MetricBetter { higher, lower, none };
const char* metric_hint_name(MetricHint hint);
const char* metric_better_name(MetricBetter better);

struct MetricEntry {
  std::string_view name;   // as in results.json; "<i>" stands for a GPU's index
  std::string_view title;  // column heading
  MetricHint hint;
  MetricBetter better;
  std::string_view description;  // one or two sentences for docs/metrics.md
};

std::span<const MetricEntry> metric_catalog();
// The row of a concrete name such as "peak_bytes_gpu3"; null when unknown.
const MetricEntry* find_metric(std::string_view name);
// "12.3 ms", "1.50 GiB", "41 %", "1.9x", "812 /s", "4", "yes"
std::string format_metric(MetricHint hint, double value);

}  // namespace bench
