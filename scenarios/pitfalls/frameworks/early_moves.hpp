// Models that are moved to a GPU above the line that gives the process a GPU of its own, where a
// framework does so: part of DDP025.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

// model.cuda() above Accelerator(), above TrainingArguments() of Hugging Face and above fit() of
// Lightning's Trainer: every process puts the model on GPU 0 first.
void check_moves_above_device(const Program& program, Report& report);

}  // namespace bench::pitfalls
