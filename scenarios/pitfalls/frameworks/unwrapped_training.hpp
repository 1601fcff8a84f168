// Training under Accelerate that goes round the wrapper: through accelerator.unwrap_model(model),
// or through the model that prepare() was passed and gave back under another name.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

// The prepared model that `call`, behind a loss, goes round; empty where it goes round none, and
// where anything may train through the prepared model.
Ref prepared_gone_round(const Program& program, const CallRef& call);

// The name that `call` goes through, where accelerator.unwrap_model() has given it the bare model
// before, or does so at the end of the round: model = accelerator.unwrap_model(model).
Ref lost_by_unwrapping(const Program& program, const CallRef& call);

// The prepared model that `call` leaves idle: what it runs was made of the bare model above
// prepare(), or is the attribute that still holds it: pipeline.unet(x) after layers = pipeline.unet
// and layers = accelerator.prepare(layers). Empty where anything may train through that.
Ref kept_from_before(const Program& program, const CallRef& call);

}  // namespace bench::pitfalls
