// Layers that code reaches without their names: by names that are put together, or all at once.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

// Methods of the class, of one that it derives from or of one that derives from it, use or freeze
// layers whose names do not stand there: getattr(self, f"{kind}_head"), for each in
// self.children(), self.requires_grad_(False).
bool handles_layers_unnamed(const Program& program, diagnose::ClassRef cls);

// The program freezes what a name in the wrapped model says: for name, p in net.named_parameters():
// if "old" in name: p.requires_grad = False.
bool freezes_layers_unnamed(const Program& program);

}  // namespace bench::pitfalls
