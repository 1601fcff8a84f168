#include "report/case_tables.hpp"

#include "bench/core/metric_catalog.hpp"
#include "bench/core/units.hpp"
#include "report/answer.hpp"
#include "simulator/operation_graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

namespace bench::report {
namespace {

std::string catalog_cell(const CaseResult& result, const char* metric) {
  const MetricEntry* entry = find_metric(metric);
  return entry == nullptr ? "-" : format_metric(entry->hint, result.metric(metric));
}

double other_peaks(const CaseResult& result) {
  if (result.memory.size() < 2) return std::numeric_limits<double>::quiet_NaN();
  double total = 0;
  for (std::size_t i = 1; i < result.memory.size(); ++i) {
    total += static_cast<double>(result.memory[i].peak_bytes);
  }
  return total / static_cast<double>(result.memory.size() - 1);
}

std::string primary_peak_cell(const CaseResult& result) {
  return result.memory.empty() ? "-" : format_bytes(result.memory[0].peak_bytes);
}

std::string idle_cell(const CaseResult& result) {
  double least = std::numeric_limits<double>::infinity();
  double most = -1;
  for (const auto& [name, value] : result.metrics) {
    if (!name.starts_with("idle_gpu")) continue;
    least = std::min(least, value);
    most = std::max(most, value);
  }
  if (most < 0) return "-";
  const auto percent = [](double v) { return fmt::format("{:.0f}", v * 100); };
  const std::string low = percent(least), high = percent(most);
  return low == high ? low + " %" : low + "-" + high + " %";
}

// A plain number: columns of throughput are compared digit by digit.
std::string throughput_cell(const CaseResult& result) {
  const double rate = result.metric("items_per_second");
  if (std::isnan(rate)) return "-";
  return throughput_text(rate);
}

std::string overlap_cell(const CaseResult& result) {
  return result.metric("bytes_communicated") > 0 ? catalog_cell(result, "comm_overlap") : "-";
}

struct CaseColumn {
  Column column;
  std::string (*cell)(const CaseResult&);
};

// The table of a model; `keep` says which columns a narrow terminal loses first.
const CaseColumn kCaseColumns[] = {
    {{"strategy", false, 9},
     [](const CaseResult& r) -> std::string { return strategy_title(r.work.strategy); }},
    {{"GPUs", true, 9}, [](const CaseResult& r) { return std::to_string(r.work.world_size()); }},
    {{"batch", true, 9}, [](const CaseResult& r) { return std::to_string(r.work.batch); }},
    {{"variant", false, 9}, [](const CaseResult& r) { return tag_text(r.work); }},
    {{"step", true, 8}, [](const CaseResult& r) { return catalog_cell(r, "step_ms_p50"); }},
    {{"samples/s", true, 7}, throughput_cell},
    {{"speed-up", true, 5},
     [](const CaseResult& r) { return catalog_cell(r, "speedup_vs_single"); }},
    {{"efficiency", true, 4},
     [](const CaseResult& r) { return catalog_cell(r, "scaling_efficiency"); }},
    {{"peak GPU 0", true, 6}, primary_peak_cell},
    {{"others", true, 5},
     [](const CaseResult& r) { return format_metric(MetricHint::bytes, other_peaks(r)); }},
    {{"imbalance", true, 3},
     [](const CaseResult& r) -> std::string {
       return r.memory.size() < 2 ? "-" : catalog_cell(r, "primary_imbalance");
     }},
    {{"exposed", true, 4}, [](const CaseResult& r) { return catalog_cell(r, "comm_exposed"); }},
    {{"overlap", true, 2}, overlap_cell},
    {{"idle", true, 3}, idle_cell},
};

bool same_memory(const DeviceMemory& a, const DeviceMemory& b) {
  return a.peak_bytes == b.peak_bytes && a.by_category == b.by_category;
}

// Neighbouring GPUs with equal memory become one column.
struct MemoryColumn {
  std::string title;
  const DeviceMemory* memory = nullptr;
};

void add_memory_columns(const CaseResult& result, std::vector<MemoryColumn>& columns) {
  const auto& memory = result.memory;
  const std::string prefix = std::string(strategy_title(result.work.strategy)) + " GPU ";
  for (std::size_t i = 0; i < memory.size();) {
    std::size_t end = i + 1;
    while (end < memory.size() && same_memory(memory[i], memory[end])) ++end;
    const std::string first = std::to_string(memory[i].device);
    const std::string last = std::to_string(memory[end - 1].device);
    columns.push_back(
        {end == i + 1 ? prefix + first : prefix + first + "-" + last + ", each", &memory[i]});
    i = end;
  }
}

std::vector<const CaseResult*> compared_cases(const Comparison& c) {
  std::vector<const CaseResult*> cases;
  for (const CaseResult* r : {c.data_parallel, c.libtorch_data_parallel, c.distributed}) {
    if (r != nullptr) cases.push_back(r);
  }
  if (cases.empty() && c.single != nullptr) cases.push_back(c.single);
  return cases;
}

std::uint64_t category_bytes(const DeviceMemory& memory, const std::string& category) {
  const auto found = memory.by_category.find(category);
  return found == memory.by_category.end() ? 0 : found->second;
}

// "peak GPU 2" where --gpus starts with another GPU than 0.
void name_primary_gpu(ModelTable& table) {
  for (const CaseResult* result : table.cases) {
    if (result->memory.empty()) continue;
    for (Column& column : table.table.columns) {
      if (column.title == "peak GPU 0") {
        column.title = "peak GPU " + std::to_string(result->memory[0].device);
      }
    }
    return;
  }
}

}  // namespace

std::vector<ModelTable> model_tables(const RunResult& run) {
  std::vector<ModelTable> tables;
  for (const CaseResult& result : run.cases) {
    if (result.status != CaseStatus::done || result.work.reference_only) continue;
    auto table = std::find_if(tables.begin(), tables.end(), [&](const ModelTable& t) {
      return t.model == result.work.model.name;
    });
    if (table == tables.end()) {
      tables.push_back({result.work.model.name, {}, {}});
      table = tables.end() - 1;
    }
    table->cases.push_back(&result);
  }
  const auto order = [](const CaseResult* r) {
    return std::tuple(r->work.world_size(), r->work.batch, r->work.strategy);
  };
  for (ModelTable& table : tables) {
    std::stable_sort(table.cases.begin(), table.cases.end(),
                     [&](const CaseResult* a, const CaseResult* b) { return order(a) < order(b); });
    for (const CaseColumn& column : kCaseColumns) table.table.columns.push_back(column.column);
    for (const CaseResult* result : table.cases) {
      std::vector<std::string> row;
      for (const CaseColumn& column : kCaseColumns) row.push_back(column.cell(*result));
      table.table.rows.push_back(std::move(row));
    }
    name_primary_gpu(table);
    table.table.drop_empty_columns();
  }
  return tables;
}

std::vector<Trouble> troubles(const RunResult& run) {
  std::vector<Trouble> all;
  for (const CaseResult& result : run.cases) {
    if (result.status == CaseStatus::done) continue;
    auto same = std::find_if(all.begin(), all.end(), [&](const Trouble& t) {
      return t.status == result.status && t.message == result.message;
    });
    if (same == all.end()) {
      all.push_back({result.status, result.message, {}});
      same = all.end() - 1;
    }
    same->cases.push_back(&result);
  }
  const auto weight = [](CaseStatus status) {
    return status == CaseStatus::wrong ? 0 : status == CaseStatus::failed ? 1 : 2;
  };
  std::stable_sort(all.begin(), all.end(), [&](const Trouble& a, const Trouble& b) {
    return weight(a.status) < weight(b.status);
  });
  return all;
}

std::string case_text(const Case& work) {
  const std::string tags = tag_text(work);
  return fmt::format("{}, {}, {} GPU{}, batch {}{}", work.model.name, strategy_title(work.strategy),
                     work.world_size(), work.world_size() == 1 ? "" : "s", work.batch,
                     tags.empty() ? "" : ", " + tags);
}

std::string trouble_cases_text(const Trouble& trouble, std::size_t at_most) {
  std::string text;
  for (std::size_t i = 0; i < std::min(at_most, trouble.cases.size()); ++i) {
    text += (i == 0 ? "" : "; ") + case_text(trouble.cases[i]->work);
  }
  if (trouble.cases.size() > at_most) {
    text += fmt::format("; and {} more", trouble.cases.size() - at_most);
  }
  return text;
}

std::string category_title(const std::string& category) {
  std::string title = category;
  std::replace(title.begin(), title.end(), '_', ' ');
  return title;
}

std::string memory_table_title(const Comparison& c) {
  return fmt::format("Memory at the peak: {}, {} GPU{}, batch {}", c.model, c.gpus,
                     c.gpus == 1 ? "" : "s", c.batch);
}

TextTable memory_table(const Comparison& comparison) {
  std::vector<MemoryColumn> columns;
  for (const CaseResult* result : compared_cases(comparison)) add_memory_columns(*result, columns);
  TextTable table;
  table.columns.push_back({"category", false, 9});
  for (const MemoryColumn& column : columns) table.columns.push_back({column.title, true, 9});
  for (int i = 0; i < simulator::kMemoryCategoryCount; ++i) {
    const std::string name =
        simulator::memory_category_name(static_cast<simulator::MemoryCategory>(i));
    std::vector<std::string> row{category_title(name)};
    std::uint64_t total = 0;
    for (const MemoryColumn& column : columns) {
      const std::uint64_t bytes = category_bytes(*column.memory, name);
      total += bytes;
      row.push_back(bytes == 0 ? "-" : format_bytes(bytes));
    }
    if (total > 0) table.rows.push_back(std::move(row));
  }
  std::vector<std::string> peak{"peak"};
  for (const MemoryColumn& column : columns)
    peak.push_back(format_bytes(column.memory->peak_bytes));
  table.rows.push_back(std::move(peak));
  return table;
}

TextTable phase_table(const Comparison& comparison) {
  const auto cases = compared_cases(comparison);
  TextTable table;
  table.columns.push_back({"phase", false, 9});
  for (const CaseResult* r : cases) {
    table.columns.push_back({strategy_title(r->work.strategy), true, 9});
  }
  for (int i = 0; i < simulator::kPhaseCount; ++i) {
    const std::string name = simulator::phase_name(static_cast<simulator::Phase>(i));
    std::vector<std::string> row{name};
    bool any = false;
    for (const CaseResult* r : cases) {
      const auto found = r->phase_ms.find(name);
      any = any || found != r->phase_ms.end();
      row.push_back(found == r->phase_ms.end() ? "-" : fmt::format("{:.2f}", found->second));
    }
    if (any) table.rows.push_back(std::move(row));
  }
  return table;
}

}  // namespace bench::report
