// Variables that a shell script sets to what is written out: words, lists of flags, arrays.
#pragma once

#include "diagnose/launch/shell_words.hpp"
#include "diagnose/launch/slurm_job.hpp"

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bench::diagnose {

class ShellVariables {
 public:
  // NAME=value or NAME+=value, with the variables in it already replaced.
  void assign(const std::string& name, LaunchWord value, bool appends);
  void assign_array(const std::string& name, std::vector<LaunchWord> elements, bool appends);
  const LaunchWord* find(const std::string& name) const;

  // if ...; then, fi: what is assigned in between is of a branch for all that follows. Gives back
  // the names.
  void enter_branch() { branches_.emplace_back(); }
  std::set<std::string> leave_branch();

  // $NAME and ${NAME} of variables that are known, in place.
  void substitute(LaunchWord& word, const JobOptions& job);
  // The same, and what an unquoted $FLAGS or "${FLAGS[@]}" becomes: several words.
  std::vector<LaunchWord> expand(LaunchWord word, const JobOptions& job);

  // Names that were asked for since the last call.
  std::set<std::string> take_used() { return std::exchange(used_, {}); }

 private:
  const std::vector<LaunchWord>* array_of(const LaunchWord& word);
  bool append_value(const std::string& name, const JobOptions& job, LaunchWord& out);
  void note_assignment(const std::string& name);

  std::map<std::string, LaunchWord> scalars_;
  std::map<std::string, std::vector<LaunchWord>> arrays_;
  std::set<std::string> used_;
  std::vector<std::set<std::string>> branches_;  // the names that each open one has assigned
  std::set<std::string> of_branch_;              // names that finished ones have assigned
};

}  // namespace bench::diagnose
