// The model inside a wrapper, or one that was wrapped, in the hands of what trains it elsewhere.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

#include <string>

namespace bench::pitfalls {

// ddp for raw = ddp.module, and for ddp.module itself; empty where it is anything else.
Ref wrapper_above(const Program& program, Ref model);

// The name of a call that handed_to_training() may find something in.
bool may_train(std::string_view name);

// The wrapper, where the model inside is handed to training of a file that is not there, and no
// wrapper goes along: train(ddp.module, optimizer) in a loop, and trainer = Trainer(ddp.module)
// with trainer.train() below it. Empty otherwise.
Ref handed_to_training(const Program& program, const CallRef& call);

// That of which the call is told: the model below 'ddp', or `model` below model = model.module.
std::string what_is_handed(const CallRef& call, Ref wrapper);

// diffusion.training_losses(model, x) below ddp = DDP(model), also as a partial function: a loss of
// a library runs the forward pass of what it is given.
bool is_loss_given_bare(const Program& program, const CallRef& call, const diagnose::Wrap& wrap);

// train_one_epoch(model, loader) of a file that is not there, and model.train(): the wrapper may be
// trained where nothing of it is seen.
bool may_train_elsewhere(const Program& program, const diagnose::Wrap& wrap);

}  // namespace bench::pitfalls
