// Calls that make a thing of a library's kind by another name: of a class of the program that
// derives from DataParallel, DistributedSampler, DataLoader or an optimizer, and of a name that
// holds the library's class, `make = DDP if several else DataParallel`. All rules see such a call
// as one of the library's: by its Api, and by the arguments that the library's class is given.
#pragma once

#include "diagnose/model/program.hpp"

#include <memory>
#include <vector>

namespace bench::diagnose {

// How a class hands what its objects are made with on to the class that it derives from.
struct HandedToBase {
  const Module* module = nullptr;
  const Function* init = nullptr;
  NodeId call = kNoNode;                     // super().__init__(...) in it
  bool names_self = false;                   // DataLoader.__init__(self, data)
  std::shared_ptr<const HandedToBase> next;  // where the base is a class of the program, too
};

// The argument that the library's class gets in the end: of BaseLoader(data, 8) what stands for
// `sampler` in the super().__init__(...) of the class, or of a class between them.
Ref argument_of_base(const CallRef& call, std::size_t index, std::string_view name);

// Something that cannot be seen goes to the library's class, too.
bool base_has_splat(const CallRef& call);

// The library's classes, of those that other names are looked for, that the expression may stand
// for where it is called; empty where it stands for a class of the program or anything else.
std::vector<Api> kinds_of_callable(const Program& program, Ref callable);

}  // namespace bench::diagnose
