// Wrappers that are more than the library's: classes of the program that derive from DataParallel
// or DistributedDataParallel, and those of other packages.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

#include <string_view>

namespace bench::pitfalls {

// The class of the program that derives from the wrapper has a method of that name.
bool defines(const Program& program, const diagnose::Wrap& wrap, std::string_view method);

// def __getattr__(self, name): return getattr(self.module, name)
bool hands_attributes_on(const Program& program, const diagnose::Wrap& wrap);

// ddp for ddp.loss(x), where that class hands the method of the model inside on: the call goes
// round the wrapper. Empty for anything else.
Ref handed_on_by(const Program& program, const CallRef& call);

// Some wrapper of the program has the attribute by its own class, or hands on what it has not, or
// may do so in a file that is not there.
bool has_wrapper_with(const Program& program, std::string_view attribute);

// The same for the wrappers that the object may be, where they are known.
bool has_wrapper_with(const Program& program, std::string_view attribute, Ref object);

// It cuts batches in a way of its own: scatter() of the class, shares that are given by hand, lists
// of graphs.
bool cuts_batches_itself(const Program& program, const diagnose::Wrap& wrap);

// Its outputs are not gathered as DataParallel gathers them.
bool gathers_itself(const Program& program, const diagnose::Wrap& wrap);

}  // namespace bench::pitfalls
