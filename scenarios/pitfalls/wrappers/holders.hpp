// Which expressions may hold a wrapped model at all: a question of their form, before the one for
// their values.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

// model, self.model, state.nets["model"]: a name, or what an object or a dictionary keeps. Neither
// torch.cuda in torch.cuda.Event nor self.
bool may_hold_wrapper(Ref object);

// model, self.model, trainer.model: a name, or what an object keeps under one.
bool is_name_or_kept(Ref object);

}  // namespace bench::pitfalls
