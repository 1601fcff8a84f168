// Models that Accelerate has prepared: accelerator.prepare() wraps them in DDP wherever several
// processes run, so what holds for a wrapper holds for them.
#pragma once

#include "diagnose/model/accelerate.hpp"
#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

// accelerator.prepare(...), self.accel.backward(loss), acc.gather(x) after acc = Accelerator().
bool is_of_accelerator(const Program& program, const CallRef& call);

// Some call of that method is one.
bool has_call_of_accelerator(const Program& program, std::string_view method);

// self.accelerator.prepare(model), of an Accelerator that another file makes and hands over.
bool is_handed_accelerator(const Program& program);

// The prepare() call that gave the object its value, where the object is used as a model and no
// other engine (DeepSpeed, FSDP) keeps its state; empty otherwise.
CallRef preparation_of_model(const Program& program, Ref object);

// The same for a name through which the wrapper is used; that the program unwraps it elsewhere, to
// save it, does not matter.
CallRef preparation_of_wrapper(const Program& program, Ref object);

// The same for model in model.module(x), of a program that reaches into the wrapper.
CallRef preparation_gone_below(const Program& program, Ref object);

// The prepare() call that gave a loader its value, here or in every caller that hands it on.
CallRef preparation_of_loader(const Program& program, Ref loader);

// The unwrap_model(model) call that gives what stands before .encoder.parameters(): the call
// itself, or what a name was given; empty for other values.
CallRef unwrapping_in(const Program& program, Ref receiver);

// An Accelerator is made in the script, or in a class of another file that something makes an
// object of: not one that a script of inference imports beside the trainer's class.
bool makes_accelerator(const Program& program);

// Code that the program comes by wraps a model in DDP or DataParallel, without Accelerate.
bool wraps_by_itself(const Program& program);

// Accelerate wraps a model of this program in DDP wherever several processes run: prepare() is
// given one, the program has no wrapper of its own, and no other engine stands behind it.
bool accelerate_wraps(const Program& program);

}  // namespace bench::pitfalls
