#include "scenarios/pitfalls/ranks/typed_starts.hpp"

#include "scenarios/pitfalls/program/facts.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Api;

namespace {

bool is_option(const Program& program, Ref value) {
  const auto& sources = program.sources(value);
  return !sources.empty() &&
         std::all_of(sources.begin(), sources.end(), [](const diagnose::Source& source) {
           return source.how == diagnose::Source::How::argument;
         });
}

// --dist-url tcp://host:port, without a rank: as it was once done with one process on each machine.
bool meets_at_address(const Program& program, const CallRef& init) {
  const Ref method = init.argument(1, "init_method");
  return !init.keyword("rank") && method && is_option(program, method) &&
         program.string(method).value_or("").starts_with("tcp://");
}

}  // namespace

bool is_typed_on_each_machine(const Program& program) {
  const auto& launches = program.launches();
  if (program.uses(Api::spawn) || program.uses(Api::deepspeed) ||
      std::any_of(launches.begin(), launches.end(), [](const diagnose::LaunchLine& launch) {
        return launch.launcher != diagnose::Launcher::python;
      }))
    return false;
  for (const char* starter : {"Process", "Popen"})
    if (!program.calls_named(starter).empty()) return false;
  for (const char* word : {"local_rank", "LOCAL_RANK", "local-rank", "device_count"})
    if (facts::speaks_of(program, word)) return false;
  const auto joins = program.calls(Api::init_process_group);
  return std::all_of(joins.begin(), joins.end(), [&](const CallRef& init) {
    return (is_option(program, init.keyword("rank")) || meets_at_address(program, init)) &&
           is_option(program, init.keyword("world_size"));
  });
}

}  // namespace bench::pitfalls
