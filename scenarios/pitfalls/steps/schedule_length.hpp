// What the length of a learning rate schedule is computed from.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

#include <string_view>
#include <vector>

namespace bench::pitfalls {

// The number of processes takes part in what the scheduler is given, or may do so out of sight:
// its steps are then those of all processes. In the learning rate it says nothing about them.
bool reckons_with_processes(const Program& program, const CallRef& scheduler);

// len(loader), and all others that go into what the scheduler is given, in whatever function.
std::vector<Ref> lengths_behind(const Program& program, const CallRef& scheduler);

// `length`, which is len(loader), is asked for below prepare() and goes into what the scheduler is
// given: args.steps = len(loader) * args.epochs.
bool counts_between(const Program& program, const CallRef& prepare, const CallRef& scheduler,
                    std::string_view length);

// The same above prepare(), where the loader still has the batches of all processes, and nowhere
// between prepare() and the scheduler.
bool counts_above(const Program& program, const CallRef& prepare, const CallRef& scheduler,
                  std::string_view length);

}  // namespace bench::pitfalls
