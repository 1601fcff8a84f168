// A function that one of its callers hands the wrapper, whatever the others hand it.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

#include <functional>

namespace bench::pitfalls {

// predict(text, model): return model.generate(text), with predict(text, ddp_model) in one place: in
// that call the parameter is the wrapper. The use stands under no test, and `holds` says of an
// argument, at its call, whether it is the wrapper.
bool is_wrapped_by_one_caller(const Program& program, Ref use, Ref object,
                              const std::function<bool(Ref use, Ref object)>& holds);

}  // namespace bench::pitfalls
