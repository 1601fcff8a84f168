// The number of steps that a learning rate schedule is made for, and the loop that ends with it.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

// args.steps of num_training_steps=args.steps, int(args.steps) and args.steps * args.accumulation.
struct ScheduleEnd {
  Ref steps;
  bool times_accumulation = false;
};

// Empty where the number has no name, or is counted from the batches.
ScheduleEnd end_of_schedule(const Program& program, const CallRef& scheduler);

// while step < args.steps: ..., if step >= args.steps: break and for step in range(args.steps),
// around the node.
bool ends_at(const Program& program, Ref node, Ref steps);

}  // namespace bench::pitfalls
