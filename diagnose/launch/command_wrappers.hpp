// Commands that only start another one: nohup, env, conda run, docker run IMAGE, singularity exec
// IMAGE, ssh HOST, profilers. What they start is the launch line.
#pragma once

#include "diagnose/launch/shell_words.hpp"

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace bench::diagnose {

// The last part of a path.
std::string_view base_name(std::string_view path);

// python, python3.10, /usr/bin/python, $PYTHON
bool is_python(std::string_view word);

// python, torchrun, accelerate, srun ...: what begins a launch line.
bool begins_launch(std::string_view word);

struct WrapperWords {
  std::size_t end = 0;  // the first word behind them
  std::map<std::string, LaunchWord> environment;
  bool is_elsewhere = false;
};

// Assignments and wrappers from `at` on; `end` is `at` where there are none.
WrapperWords read_wrappers(const std::vector<LaunchWord>& words, std::size_t at);

// bash -c "cd x && torchrun ...", eval "$COMMAND", ssh host "...": text that is read as commands
// again. The words before `begin` stay in front of each of them.
struct NestedCommand {
  std::size_t begin = 0;
  LaunchWord text;
};
std::optional<NestedCommand> nested_command(const std::vector<LaunchWord>& words);

}  // namespace bench::diagnose
