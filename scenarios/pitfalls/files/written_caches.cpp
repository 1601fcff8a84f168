#include "scenarios/pitfalls/files/written_caches.hpp"

#include "scenarios/pitfalls/files/file_calls.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/path_form.hpp"

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>

namespace bench::pitfalls {

using diagnose::Kind;

namespace {

bool is_one_path(const Program& program, Ref a, Ref b) {
  if (!a || !b) return false;
  if (a.text() == b.text()) return a.kind() != Kind::call || !path_form(program, a).empty();
  const std::string form = path_form(program, a);
  return !form.empty() && form == path_form(program, b);
}

// The path of os.path.exists(path), os.path.isfile(path), path.is_file(); empty for other calls.
Ref path_asked_for(const CallRef& call) {
  constexpr std::string_view kQuestions[] = {"exists", "isfile", "is_file", "isdir", "is_dir"};
  if (std::find(std::begin(kQuestions), std::end(kQuestions), call.call->name) ==
      std::end(kQuestions))
    return {};
  return call.positional(0) ? call.positional(0) : call.receiver();
}

// if not os.path.exists(path): around what writes there, or the else of the contrary.
bool is_missing_there(const Program& program, Ref write, Ref path) {
  const auto guards = program.guards(write);
  return std::any_of(guards.begin(), guards.end(), [&](const diagnose::Guard& guard) {
    if (guard.holds != guard.condition.text().starts_with("not ")) return false;
    const auto calls = facts::calls_in(guard.condition);
    return std::any_of(calls.begin(), calls.end(), [&](const CallRef& call) {
      return is_one_path(program, path_asked_for(call), path);
    });
  });
}

bool is_read_beside(const Program& program, const CallRef& write, Ref path) {
  const auto& calls = write.module->calls();
  return std::any_of(calls.begin(), calls.end(), [&](const diagnose::Call& made) {
    const CallRef call{write.module, &made};
    return is_one_path(program, read_path(program, call), path) &&
           program.enclosing_function(call.ref()) == program.enclosing_function(write.ref());
  });
}

// urlopen(url) in the function: a download, which is told as one.
bool fetches_beside(const Program& program, const CallRef& write) {
  const auto& calls = write.module->calls();
  return std::any_of(calls.begin(), calls.end(), [&](const diagnose::Call& made) {
    const CallRef call{write.module, &made};
    return (made.name == "urlopen" || made.path.starts_with("requests.")) &&
           program.enclosing_function(call.ref()) == program.enclosing_function(write.ref());
  });
}

}  // namespace

std::vector<CallRef> written_caches(const Program& program) {
  std::vector<CallRef> out;
  for (const diagnose::Module* module : program.modules())
    for (const diagnose::Call& made : module->calls()) {
      const CallRef write{module, &made};
      const Ref path = written_path(program, write);
      if (path && is_missing_there(program, write.ref(), path) &&
          is_read_beside(program, write, path) && !fetches_beside(program, write))
        out.push_back(write);
    }
  return out;
}

}  // namespace bench::pitfalls
