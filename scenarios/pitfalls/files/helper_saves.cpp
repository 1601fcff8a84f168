#include "scenarios/pitfalls/files/helper_saves.hpp"

#include "scenarios/pitfalls/program/argument_for.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Kind;
using diagnose::Module;
using diagnose::Source;

namespace {

bool is_dictionary_of_states(const Program& program, Ref value) {
  const auto& sources = program.sources(value);
  return std::any_of(sources.begin(), sources.end(), [](const Source& source) {
    return source.ref.kind() == Kind::dictionary &&
           facts::contains(source.ref.text(), "state_dict()");
  });
}

// What may tell a helper on which rank it runs.
bool tells_rank(const Program& program, Ref argument) {
  return says_any(argument.text(), {"rank", "is_main", "master", "local", "gpu", "device"}) ||
         argument.text() == "args" || argument.text() == "cfg" || argument.text() == "config" ||
         argument.text() == "opt" || argument.text() == "self" || program.comes_from_rank(argument);
}

}  // namespace

std::vector<CallRef> helpers_that_save(const Program& program) {
  std::vector<CallRef> out;
  const Module& root = program.root();
  for (const diagnose::Call& made : root.calls()) {
    const CallRef call{&root, &made};
    if (made.api != Api::none || !says_any(made.name, {"save"}) ||
        !says_any(made.name, {"checkpoint", "ckpt", "snapshot", "model"}) ||
        says_any(made.name, {"master", "main", "rank", "dist"}) || program.callee(call) ||
        (call.receiver() && made.path.empty()))
      continue;
    if (!call.positional(0) || !is_dictionary_of_states(program, call.positional(0))) continue;
    const auto given = facts::arguments_of(call);
    if (std::none_of(given.begin() + 1, given.end(),
                     [&](Ref each) { return tells_rank(program, each); }))
      out.push_back(call);
  }
  return out;
}

}  // namespace bench::pitfalls
