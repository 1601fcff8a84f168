// How a program is started, line by line: what the options of each launch line decide, and how many
// processes it starts. Nothing is found because of such a line; a finding that matters with several
// processes only is told as a note where all lines that come by start a single one.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

#include <string>
#include <vector>

namespace bench::pitfalls::facts {

// "all launch lines that come by start one process": those that are known and do not leave the node
// out by their options. Empty without any, and where one of them starts several or may do so.
// `in_group`: also those that make a process group of one, in which a wrapper is made all the same.
std::string one_process_as_launched(const Program& program, Ref node, bool in_group);

// The options of the line leave the node out: if args.launcher != "none": join(), where the line
// does not ask for one.
bool is_passed_by(const Program& program, const diagnose::LaunchLine& launch, Ref node);

// There are launch lines, and the options of each leave the node out: if args.mode == "distil".
bool is_left_out_by_all_lines(const Program& program, Ref node);

// The flag is an option that is off unless a line gives it, and none that is known does.
bool is_off_as_launched(const Program& program, Ref flag);

// "the words that parse_args() is given here do not lead to it", where the script writes them out
// in place of those of the command line (fixed_commands.hpp). Empty where one of them may do so.
std::string passed_by_fixed_commands(const Program& program, Ref node);

// Process(...), Popen(...) and their kin, anywhere in the program.
std::vector<CallRef> starts_of_processes(const Program& program);

// What one of them runs may be a rank: all but a Process whose target is at hand and neither speaks
// of ranks nor calls what joins a group, as a writer of files does.
bool may_start_a_rank(const Program& program, const CallRef& start);

// What mp.spawn(...) or one of them runs is a function at hand that joins a process group, or calls
// what does.
bool surely_starts_ranks(const Program& program, const CallRef& start);

}  // namespace bench::pitfalls::facts
