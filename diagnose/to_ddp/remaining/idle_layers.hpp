// Layers of a wrapped model that its forward pass leaves out.
#pragma once

#include "diagnose/model/program.hpp"

namespace bench::diagnose {

// A layer with parameters that __init__ always gives the object, and that only methods use which
// no forward pass of what is wrapped leads to: a head for another stage of the training. Empty
// where there is none, or the layer may be frozen.
Ref layer_beside_forward(const Program& program, const Wrap& wrap, const ClassRef& cls);

// self.generator = generator of a constructor that is given a module, which no forward pass of what
// is wrapped names: a wrapper around two networks that are trained in turn. Empty where there is
// none.
Ref module_beside_forward(const Program& program, const Wrap& wrap, const ClassRef& cls);

}  // namespace bench::diagnose
