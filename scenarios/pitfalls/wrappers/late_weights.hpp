// Weights that are drawn at random below the wrap. DDP copies parameters between ranks only when it
// is built, so each rank keeps what it draws.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

#include <string_view>
#include <vector>

namespace bench::pitfalls {

// model.apply(weights_init), model.init_weights(), model.reset_parameters()
bool initialises(const CallRef& call);
bool may_initialise(std::string_view name);  // of a call, by its name alone

struct LateDraw {
  CallRef call;
  Ref model;  // what is drawn anew: the wrapper, or a part of what it holds
};

// The same of what may stand inside a wrapper, init_weights(model) and nn.init.normal_(head.bias),
// on every rank; none where a seed that all ranks share makes them draw alike.
std::vector<LateDraw> draws_on_every_rank(const Program& program);

}  // namespace bench::pitfalls
