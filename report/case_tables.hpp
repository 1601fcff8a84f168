// The tables of a run, ready to print: one per model with its cases, and the memory of a comparison
// by category. Terminal, Markdown and HTML show the same rows.
#pragma once

#include "bench/core/case_result.hpp"
#include "report/headline.hpp"
#include "report/text_table.hpp"

#include <string>
#include <vector>

namespace bench::report {

struct ModelTable {
  std::string model;
  TextTable table;                       // finished cases, by GPUs, batch, strategy
  std::vector<const CaseResult*> cases;  // one per row
};
std::vector<ModelTable> model_tables(const RunResult& run);

// Cases without figures, equal reasons joined: "skipped: <reason> (DDP 4 GPUs batch 2, ...)".
struct Trouble {
  CaseStatus status = CaseStatus::skipped;
  std::string message;
  std::vector<const CaseResult*> cases;
};
std::vector<Trouble> troubles(const RunResult& run);  // wrong first, then failed, then skipped
std::string trouble_cases_text(const Trouble& trouble, std::size_t at_most);

// Peak memory of a comparison's cases (DP and DDP, else single). Rows: memory categories in a fixed
// order, then the peak. Columns: GPUs; neighbours with equal memory joined ("DP GPU 1-3, each").
TextTable memory_table(const Comparison& comparison);
// "Memory at the peak: resnet50, 4 GPUs, batch 256"
std::string memory_table_title(const Comparison& comparison);

// Host time by phase of the same cases, in the order in which phases run; no rows without phases.
TextTable phase_table(const Comparison& comparison);

// "resnet50, DDP, 4 GPUs, batch 256, bucket_mb:25"
std::string case_text(const Case& work);
// "gathered outputs" for "gathered_outputs"
std::string category_title(const std::string& category);

}  // namespace bench::report
