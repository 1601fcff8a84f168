// A process group that only some runs join, in a program that is made to run without one as well:
// if world_size > 1: init_process_group(...).
#pragma once

#include "scenarios/pitfalls/rule.hpp"

#include <optional>
#include <string>

namespace bench::pitfalls {

// What decides whether a run joins the group.
struct JoinTest {
  CallRef join;   // the only init_process_group of the program
  Ref condition;  // the test above it, perhaps around the call of the helper that it stands in
  bool holds = true;
  bool attempt = false;  // no test but a try, whose handler goes on as one process
};

// Empty where every run joins, where several places may, or where nothing shows that the program is
// meant to run without a group.
std::optional<JoinTest> test_of_joining(const Program& program);

// The call also comes in the runs that join no group: no test that may be about ranks, devices or
// the group stands above it, here or in what calls its function.
bool runs_without_group(const Program& program, const JoinTest& test, Ref call);

// Some call of init_process_group is reached in every run: by no option, test or try.
bool joins_in_every_run(const Program& program);

// if args.local_rank != -1: the value of the option for a run without a launcher. The branch that
// the guard takes is that of a launcher.
bool asks_for_launcher(const diagnose::Guard& guard);

}  // namespace bench::pitfalls
