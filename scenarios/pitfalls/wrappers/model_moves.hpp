// Where a model comes to its device.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

#include <string_view>
#include <vector>

namespace bench::pitfalls {

// model.to(device), and the place in the function of the model's name where it runs: itself, or the
// call of a function that does it to its parameter.
struct ModelMove {
  CallRef call;
  CallRef at;
};

// The moves of the model, also inside a wrapper: DataParallel(model).cuda(). A function that is
// given the model counts where it is given the optimizer of this name, too, or wraps the model.
std::vector<ModelMove> moves_of_model(const Program& program, Ref model,
                                      std::string_view optimizer);

// The model has come to a device above the optimizer, by one of the moves or where it was made, and
// none of them takes it from the default GPU to the rank's own below.
bool is_moved_before(const Program& program, Ref model, const CallRef& optimizer,
                     const std::vector<ModelMove>& moves);

}  // namespace bench::pitfalls
