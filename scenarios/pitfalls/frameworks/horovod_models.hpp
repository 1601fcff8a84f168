// Which models the optimizer behind a hvd.DistributedOptimizer trains.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

#include <vector>

namespace bench::pitfalls {

// The models whose parameters() it is given, also by add_param_group: net in SGD(net.parameters()).
std::vector<Ref> models_of_horovod_optimizer(const Program& program, const CallRef& made);

// Two expressions that give the same object: the same call makes it.
bool same_model(const Program& program, Ref a, Ref b);

}  // namespace bench::pitfalls
