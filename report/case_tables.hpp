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

// Rows: memory categories, largest first, and the peak. Columns: GPUs; equal neighbours joined
// ("GPU 1-3, each").
TextTable memory_table(const CaseResult& result);

// "resnet50, DDP, 4 GPUs, batch 256, bucket_mb:25"
std::string case_text(const Case& work);
// "gathered outputs" for "gathered_outputs"
std::string category_title(const std::string& category);

}  // namespace bench::report
