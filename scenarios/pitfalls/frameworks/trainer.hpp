// Lightning Trainer arguments in one form, whether they stand in a Trainer(...) call or under a
// `trainer:` key of a config file.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace bench::pitfalls::trainer {

struct Argument {
  std::string name;
  diagnose::Value value;
  Ref node;                                      // the value in a script
  const diagnose::ConfigEntry* entry = nullptr;  // the entry of a config
};

struct Use {
  CallRef call;  // empty for a config
  std::vector<Argument> arguments;
  bool has_more = false;  // a ** argument that cannot be seen

  const Argument* find(std::string_view name) const;
};

std::vector<Use> uses(const Program& program);

// The values that the argument can have, as far as they are written: "dp" and "auto" for
// `"dp" if gpus > 1 else "auto"`. None where the version of Lightning decides.
std::vector<diagnose::Value> choices(const Program& program, const Argument& argument);

// devices=1, [0] or "0,", as it is written, and no option's default.
bool is_one(const Argument* count);

// Reports at the argument (`gpus=2`, or the key of the config).
Finding& flag(Report& report, const Argument& argument, Confidence confidence, std::string message);

// Where the requirements keep Lightning below `removed`, nothing fails yet: the finding, whose help
// is written, becomes a note.
void weigh_by_requirements(const Program& program, int removed, Finding& finding);

// Where the program calls what Lightning 2 no longer has (Trainer.from_argparse_args, pl.metrics),
// it knows only the old names: a finding about one of those becomes a note.
void weigh_by_calls(const Program& program, Finding& finding);

// The same for an argument that a later Lightning than that took away: where the calls run, so does
// the argument. What both go with is one upgrade, and no reason to wait.
void weigh_by_older_calls(const Program& program, int removed, Finding& finding);

// Replaces `name=value` in a script; does nothing for configs and ** dictionaries, for notes, and
// where the call keeps another argument that Lightning 2 has not: half of a call brought up to date
// is valid in no version.
void fix(const Use& use, const Argument& argument, const std::string& text,
         const std::string& title, Finding& finding);

// The value as Python source, for messages: 2, "0,1", [0, 1].
std::string spelling(const diagnose::Value& value);

}  // namespace bench::pitfalls::trainer
