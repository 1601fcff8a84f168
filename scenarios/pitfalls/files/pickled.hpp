// What torch.save pickles as it is: the object itself, and the values of a dictionary.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

#include <vector>

namespace bench::pitfalls {

// model for torch.save(model, path); encoder and heads for torch.save({"encoder": encoder, ...},
// path), also where the dictionary has a name, or gets its items later.
std::vector<Ref> pickled_by(const Program& program, const CallRef& save);

}  // namespace bench::pitfalls
