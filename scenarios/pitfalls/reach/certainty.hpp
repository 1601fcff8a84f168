// How sure it is that a line is run, and run by several processes. A rule about ranks is right only
// where both are so: code that a script merely imports, a method that a common name leads to, or a
// wrapper that a run of one process never makes are no mistakes. A warning that rests on less than
// that is told as a note, with what is not known in its text.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace bench::pitfalls::facts {

enum class Certainty : std::uint8_t { no, perhaps, certain };

// The program runs the node: calls that can be followed lead to it from the script's own level, or
// from the function that a launcher starts. `perhaps` where only a name leads to it.
Certainty certainty_of_reach(const Program& program, Ref node);

// Several processes run the program: it joins a process group of more than one, a launch line
// starts several, or it calls, whatever its options are, what works in a process group only.
Certainty certainty_of_ranks(const Program& program);

// Something in the program that no option switches off needs a process group, or joins one by a
// name: ranks run it, wherever the call of init_process_group is.
bool works_in_a_group(const Program& program);

// The number is 1, and no setting at the head of the file (NUM_GPUS = 1) that goes to mp.spawn:
// whoever has more GPUs changes that.
bool is_one_for_good(const Program& program, Ref number);

// init_process_group(world_size=1), and rank=0 with no size: with the rank written out, every
// process of a larger group would be the same one.
bool is_written_for_one(const Program& program, const CallRef& init);

// mp.spawn(work, nprocs=NUM_GPUS) after NUM_GPUS = 1: a run of one process as it stands, so that
// nothing about several is certain.
bool is_one_by_setting(const Program& program);

// assert args.num_gpus == 1 at the script's own level: whatever else it can do, it runs as one.
bool claims_one_process(const Program& program);

// The launch line starts several processes, on one node or more.
bool starts_several(const diagnose::LaunchLine& launch);

// if torch.cuda.device_count() > 1: model = DataParallel(model): made where there are several GPUs.
bool is_made_for_several_gpus(const Program& program, const diagnose::Wrap& wrap);

// What is not known of one program although findings rest on it; what holds for the whole program
// is found out once.
class Doubts {
 public:
  explicit Doubts(const Program& program) : program_(program) {}

  const Program& program() const { return program_; }

  // About the rule's finding at `where`, as half a sentence; empty where all is known, and for
  // rules that need no ranks.
  std::string about(const Rule& rule, Ref where);
  // Whether the project's config files keep the program from coming by, or from starting ranks
  // where the rule is about what each of them does; asked of findings that are not in doubt
  // otherwise.
  std::string about_configuration(const Rule& rule, Ref where);
  // The launch lines, or the config files of the project, show no run that comes by.
  bool is_left_out(const Rule& rule, Ref where);
  // The rule is about several processes, and the script starts them by a setting that is one.
  bool one_by_setting(const Rule& rule);

 private:
  bool starts_ranks();
  bool is_put_aside();
  bool makes_wrapper();

  const Program& program_;
  std::optional<bool> ranks_;
  std::optional<bool> put_aside_;
  std::optional<bool> wrapper_;
  std::optional<bool> one_by_setting_;
  std::optional<bool> reads_configs_;
  std::optional<std::string> one_process_;  // why the config files start one
};

}  // namespace bench::pitfalls::facts
