// Accumulation that Accelerate does and the script does too, or hands to it in the wrong place.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

// loss / n before accelerator.backward(loss), where Accelerator(gradient_accumulation_steps=n)
// divides by the same number.
void check_divided_twice(const Program& program, Report& report);

// with accelerator.accumulate(model): around the loop over batches, and not in it.
void check_accumulate_around_loop(const Program& program, Report& report);

// Accelerator(gradient_accumulation_steps=n), which counts only under accumulate(): without it
// sync_gradients is true in every step. `made` is that call.
void check_accumulation(const Program& program, const CallRef& made, Report& report);

// Accelerator() without a number, where accumulate() is called and a setting
// args.gradient_accumulation_steps is read for everything else. `made` is that call.
void check_untold_accumulation(const Program& program, const CallRef& made, Report& report);

}  // namespace bench::pitfalls
