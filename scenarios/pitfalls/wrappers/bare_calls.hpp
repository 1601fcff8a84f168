// Training that calls methods or parts of the model that was wrapped, by names from before.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

// raw.encode_image(x) beside ddp = DDP(raw), and vae(x) beside ddp = DDP(Both(vae, unet)): the call
// runs what the wrapper holds, or a part of it, and no name on the way holds the wrapper. False
// where something out of sight may train through the wrapper.
bool runs_inside_of(const Program& program, const CallRef& call, const diagnose::Wrap& wrap);

}  // namespace bench::pitfalls
