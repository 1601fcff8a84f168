// How a program uses Hugging Face's Accelerate and Trainer: the calls that prepare and what they
// are passed, and trainers of its own.
#pragma once

#include "diagnose/model/program.hpp"

#include <string_view>

namespace bench::diagnose {

// prepare(), and prepare_model(), prepare_data_loader() and their kin, which are given one object.
bool is_prepare(std::string_view name);

// What a prepare() call is passed in the place `index`; also prepare_model(model=model), where the
// only one has a name. Empty behind the last.
Ref prepared_by(const CallRef& prepare, std::size_t index);

// The call makes a Trainer of transformers, of a class that derives from the library's.
bool makes_hf_trainer(const Program& program, const CallRef& made);

// DeepSpeed or FSDP is part of what the program does, and does not only stand in an import that is
// left over, in a text for the user or in the name of an optimizer.
bool uses_another_engine(const Program& program);

}  // namespace bench::diagnose
