// Training loops under Accelerate that go over a loader as it was made, not over what prepare()
// returned for it.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

struct RawLoader {
  CallRef prepare;  // the call that the loop goes round; empty where it goes round none
  Ref unknown;      // what it is passed that nothing gives a value, if that is the mistake
};

// batches = accelerator.prepare(loader), where the loop still goes over `loader`. Also where the
// call is passed a name that nothing gives a value, and no other call is passed the loader.
RawLoader raw_loader_of(const Program& program, const diagnose::TrainingLoop& loop);

}  // namespace bench::pitfalls
