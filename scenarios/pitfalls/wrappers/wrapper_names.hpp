// Attributes of the wrapped model that a program looks for on the wrapper, or leaves there, without
// an error to tell.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

#include <functional>
#include <string_view>

namespace bench::pitfalls {

// The name is one that the wrappers themselves have: state_dict, module, no_sync.
bool is_wrapper_api(std::string_view name);

using IsWrapperName = std::function<bool(std::string_view name)>;

// Whether the object stands for the wrapper at the use.
using HoldsWrapper = std::function<bool(Ref use, Ref object)>;

// model.phase = 2 on the wrapper, where the program uses model.module.phase elsewhere; and
// model.exact = True, which nothing in the program reads from the wrapper.
void check_stores_on_wrapper(const Program& program, const IsWrapperName& is_its_own,
                             const HoldsWrapper& holds, Report& report);

// if hasattr(model, "bank"): of what is always the wrapper: a branch that never runs.
void check_questions_to_wrapper(const Program& program, const IsWrapperName& is_its_own,
                                Report& report);

// trainer.model.encoder in a hook: Lightning's trainer holds the wrapper there.
void check_trainer_models(const Program& program, const IsWrapperName& is_its_own, Report& report);

// model.encode(x) in compute_loss(self, model, inputs), which Hugging Face's Trainer hands the
// wrapper.
void check_models_of_hooks(const Program& program, const IsWrapperName& is_its_own, Report& report);

// update_average(copy, wrapper), which looks up the wrapper's names of parameters among those of a
// bare copy.
void check_names_of_parameters(const Program& program, Report& report);

}  // namespace bench::pitfalls
