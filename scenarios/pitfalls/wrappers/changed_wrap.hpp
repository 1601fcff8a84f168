// Which wrapper holds what a statement changes below the wrap.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

// The model whose parameters a statement changes: model for model.module.fc.weight.
Ref base_of(Ref expression);

// Apex's wrapper reduces whatever has a gradient, so what is frozen later does no harm there.
enum class OfApex : bool { left_out, too };

// The wrapper that holds the parameters behind `object`, and was made before `use`.
const diagnose::Wrap* changed_wrap(const Program& program, Ref object, Ref use,
                                   OfApex apex = OfApex::left_out);

// A loss comes from the wrapper. One that no loss comes from, as that of a teacher, has no
// gradients to reduce.
bool is_trained(const Program& program, const diagnose::Wrap& wrap);

}  // namespace bench::pitfalls
