// Which arguments Lightning's Trainer takes, and took, by version, read from the signatures of its
// releases; and what replaced the removed ones.
#pragma once

#include <string_view>

namespace bench::pitfalls::trainer {

// Versions as numbers that compare: 1.4 is 104, 2.0 is 200.
inline constexpr int kNever = 9999;
inline constexpr int kVersion2 = 200;  // which dropped most of what rules report

struct SignatureEntry {
  std::string_view name;
  int since = 100;
  int removed = kNever;
  std::string_view instead;  // how to say it today
};

// Null for arguments that every version takes, and for unknown ones.
const SignatureEntry* find_signature(std::string_view argument);

bool accepts(std::string_view argument, int version);

// "1.7" for 107.
const char* version_text(int version);

// The strategy that took the place of one that 2.0 no longer has; empty for one that it has.
std::string_view strategy_successor(std::string_view strategy);

// The same for the name of a class of pytorch_lightning.strategies: what to write in its place.
std::string_view strategy_class_successor(std::string_view name);

}  // namespace bench::pitfalls::trainer
