#include "scenarios/pitfalls/reach/commented_calls.hpp"

#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>

namespace bench::pitfalls::facts {
namespace {

// "model, loss = " in front of a call.
bool is_target(std::string_view given) {
  while (!given.empty() && given.back() == ' ') given.remove_suffix(1);
  if (given.empty() || given.back() != '=') return false;
  given.remove_suffix(1);
  return std::all_of(given.begin(), given.end(), [](char each) {
    return std::isalnum(static_cast<unsigned char>(each)) != 0 || each == '_' || each == ',' ||
           each == '.' || each == ' ';
  });
}

// Nothing stands behind the call, which may go on below.
bool ends_line(std::string_view call) {
  int open = 0;
  for (std::size_t at = 0; at < call.size() && call[at] != '\n'; ++at) {
    if (call[at] == '(') ++open;
    if (call[at] != ')' || --open > 0) continue;
    const std::string_view rest = call.substr(at + 1, call.find('\n', at) - at - 1);
    const std::size_t more = rest.find_first_not_of(" \t\r");
    return more == std::string_view::npos || rest[more] == '#';
  }
  return true;
}

// # train(args) and # model = train(args): the comment holds that statement and nothing else.
bool stands_in_comment(std::string_view text, std::size_t at) {
  const std::size_t line = text.rfind('\n', at) + 1;  // npos + 1 is the first line
  const std::string_view before = text.substr(line, at - line);
  const std::size_t first = before.find_first_not_of(" \t");
  if (first == std::string_view::npos || before[first] != '#') return false;
  std::string_view given = before.substr(first);
  given.remove_prefix(std::min(given.find_first_not_of("# \t"), given.size()));
  const bool is_bare = given.empty() || is_target(given);
  return is_bare && ends_line(text.substr(text.find('(', at)));
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
