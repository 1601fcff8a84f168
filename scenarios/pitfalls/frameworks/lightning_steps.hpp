// What a LightningModule does by hand in training_step(), which the Trainer runs on every rank.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

#include <vector>

namespace bench::pitfalls {

// Reports if torch.isnan(loss): return None in training_step(): Lightning makes no backward pass
// for it, or the step leaves out its own manual_backward() below. Only where the Trainer runs steps
// in several processes.
void check_lightning_steps(const Program& program, Report& report);

// clip_grad_norm_() between manual_backward() and the optimizer's step() under precision=16, where
// Lightning unscales the gradients in that step.
std::vector<CallRef> manual_clips_of_scaled(const Program& program);

}  // namespace bench::pitfalls
