// What DDP and DataParallel have themselves, beside what the model inside has.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

#include <string_view>

namespace bench::pitfalls {

// A method or attribute of the wrapper, or one that begins with an underscore.
bool is_wrapper_api(std::string_view name);

// model._load_weights(path): the call of a private method that neither PyTorch nor a library has
// put on the wrapper.
bool is_private_method(Ref use);

}  // namespace bench::pitfalls
