#include "scenarios/pitfalls/reach/commented_calls.hpp"

#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>

namespace bench::pitfalls::facts {
namespace {

// The line up to there begins with the comment, and another name does not end there.
bool stands_in_comment(std::string_view text, std::size_t at) {
  const std::size_t line = text.rfind('\n', at) + 1;  // npos + 1 is the first line
  const std::string_view before = text.substr(line, at - line);
  const std::size_t first = before.find_first_not_of(" \t");
  if (first == std::string_view::npos || before[first] != '#') return false;
  const auto last = static_cast<unsigned char>(before.back());
  return std::isalnum(last) == 0 && last != '_' && last != '.';
}

// All training of the program is in the function, or in what it calls: what the script is for.
bool holds_the_training(const Program& program, diagnose::FunctionRef function) {
  const auto& loops = program.training_loops();
  if (loops.empty()) return false;
  const auto reached = program.reached({function.module, function.function->body});
  return std::all_of(loops.begin(), loops.end(), [&](const diagnose::TrainingLoop& loop) {
    return loop.function == function ||
           std::find(reached.begin(), reached.end(), loop.function) != reached.end();
  });
}

}  // namespace

bool is_called_in_comment(const Program& program, diagnose::FunctionRef function) {
  if (function.module != &program.root() || function.function->owner_class != diagnose::kNoNode ||
      function.function->name == "main" || !program.call_sites(function).empty() ||
      !program.handed_on(function).empty())
    return false;
  const std::string_view text = function.module->tree().source();
  const std::string call = std::string(function.function->name) + "(";
  for (std::size_t at = text.find(call); at != std::string_view::npos; at = text.find(call, at + 1))
    if (stands_in_comment(text, at)) return holds_the_training(program, function);
  return false;
}

}  // namespace bench::pitfalls::facts
