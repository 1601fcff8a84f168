// The answer before the tables: what a run says, in plain sentences. They follow from the figures
// that are there, not from the scenario's name.
#pragma once

#include "report/headline.hpp"

#include <string>
#include <vector>

namespace bench::report {

// "DDP is 1.90x faster than DP here (resnet50, 4 GPUs, batch 256): ...". Needs DP and DDP.
std::string speed_sentence(const Comparison& comparison);
// One to four sentences; at least one, also when nothing finished.
std::vector<std::string> headline_sentences(const RunResult& run);
// "Simulated times may be off by up to 30 %: <why>."; empty when nothing says how far.
std::string error_band_sentence(const RunResult& run);
// "5043", "3.12": samples per second as tables and sentences show them.
std::string throughput_text(double items_per_second);

}  // namespace bench::report
