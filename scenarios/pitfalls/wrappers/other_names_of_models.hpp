// The names that a model has beside the one its optimizer is made for, and the place of that
// optimizer as methods beside it see it.
#pragma once

#include "scenarios/pitfalls/rule.hpp"
#include "scenarios/pitfalls/wrappers/model_moves.hpp"

#include <vector>

namespace bench::pitfalls {

// bare after bare = model.module and bare = model, and self.model of self.model = model below: what
// moves the model under one name moves it under all.
void add_other_names(const Program& program, std::vector<Ref>& models);

// self.load_optimizer(), the only call of the method that makes the optimizer, where the model is
// an attribute that the caller moves; the optimizer itself elsewhere.
CallRef seen_beside(const Program& program, const CallRef& optimizer, Ref model,
                    const std::vector<ModelMove>& moves);

}  // namespace bench::pitfalls
