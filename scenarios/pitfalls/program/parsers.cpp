#include "scenarios/pitfalls/program/parsers.hpp"

#include "scenarios/pitfalls/program/facts.hpp"

#include <algorithm>
#include <optional>

namespace bench::pitfalls::facts {
namespace {

// deepspeed.add_config_arguments(parser), which adds options of its own and no rank.
bool is_of_deepspeed(const CallRef& call) {
  return call.call->name == "add_config_arguments" && call.call->path.starts_with("deepspeed.");
}

// The call that makes the parser, where there is one that it can be.
std::optional<Ref> made_by(const Program& program, Ref parser) {
  if (!parser) return std::nullopt;
  const auto& sources = program.sources(parser);
  const CallRef made = sources.size() == 1 ? program.as_call(sources.front().ref) : CallRef{};
  if (!made) return std::nullopt;
  return is_of_deepspeed(made) ? made_by(program, made.positional(0)) : sources.front().ref;
}

bool same_place(Ref a, Ref b) { return a.module == b.module && a.node == b.node; }

bool is_argument_parser(const Program& program, Ref made) {
  const CallRef call = program.as_call(made);
  return call.call->name == "ArgumentParser" && !call.keyword("parents") && !call.has_splat();
}

// All its options are add_argument("--name"), and nobody out of sight is handed the parser.
bool is_written_out(const Program& program, Ref made) {
  for (const CallRef& option : program.calls_named("add_argument")) {
    const auto parser = made_by(program, option.receiver());
    // A group's options are the parser's.
    if (!parser) return false;
    for (std::size_t i = 0; i == 0 || option.positional(i); ++i) {  // "-r", "--local_rank"
      const auto name = program.string(option.positional(i));
      if (!name || contains(lowered(*name), "rank")) return false;
    }
  }
  for (const diagnose::Module* module : program.modules())
    for (const auto& call : module->calls()) {
      const CallRef ref{module, &call};
      if (program.callee(ref) || is_of_deepspeed(ref)) continue;
      for (std::size_t i = 0; const Ref argument = ref.positional(i); ++i) {
        if (argument.kind() != diagnose::Kind::identifier) continue;
        const auto parser = made_by(program, argument);
        if (parser && same_place(*parser, made)) return false;
      }
    }
  return true;
}

}  // namespace

bool may_leave_unknown_options(const Program& program, const CallRef& option) {
  const auto own = made_by(program, option.receiver());
  const auto calls = program.calls_named("parse_known_args");
  return std::any_of(calls.begin(), calls.end(), [&](const CallRef& call) {
    const auto other = made_by(program, call.receiver());
    return !own || !other || same_place(*own, *other);
  });
}

std::vector<CallRef> parsers_without_rank(const Program& program) {
  std::vector<CallRef> out;
  for (const char* word : {"parse_known_args", "sys.argv", "DEFINE_integer"})
    if (program.mentions(word)) return out;
  for (const CallRef& parse : program.calls_named("parse_args")) {
    const auto made = made_by(program, parse.receiver());
    if (!made || !is_argument_parser(program, *made) || parse.positional(0) ||
        parse.keyword("args") || !is_reachable(program, parse.ref()) ||
        parse.module != &program.root())
      continue;
    if (is_written_out(program, *made)) out.push_back(parse);
  }
  return out;
}

}  // namespace bench::pitfalls::facts
