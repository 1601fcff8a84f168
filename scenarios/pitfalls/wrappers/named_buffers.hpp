// What a model's name or making says of buffers where its layers are not in sight.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

// Resnet50(...) of a file that is not there, or one of several that an option chooses between.
bool is_named_after_buffers(const Program& program, Ref model);

// The same of what is wrapped; a script that asks for its BatchNorm has some.
bool is_named_after_buffers(const Program& program, const diagnose::Wrap& wrap);

// Net(in_channels=3) of a file that is not there: a network of convolutions, which are normalised
// over the batch as a rule.
bool is_convolutional(const Program& program, const diagnose::Wrap& wrap);

}  // namespace bench::pitfalls
