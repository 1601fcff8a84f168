// Which figures of a run are worth drawing, per model: where the step goes, throughput over GPUs
// and over batch sizes or the scenario's own axis, memory per GPU.
#pragma once

#include "bench/core/case_result.hpp"

#include <string>
#include <vector>

namespace bench::report {

struct Chart {
  std::string title;
  std::string subtitle;  // what is held fixed: "4 GPUs, batch 256"
  std::string html;      // legend and SVG
  bool wide = true;      // takes the page's width; narrow charts stand side by side
};

Chart step_chart(const RunResult& run, const std::string& model);
std::vector<Chart> throughput_charts(const RunResult& run, const std::string& model);
// Empty without a search for the largest batch.
Chart batch_chart(const RunResult& run, const std::string& model);
Chart memory_chart(const RunResult& run, const std::string& model);

}  // namespace bench::report
