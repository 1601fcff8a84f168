#include "diagnose/to_ddp/remaining/ranks_talk.hpp"

#include "scenarios/pitfalls/program/facts.hpp"

#include <algorithm>

namespace bench::diagnose {
namespace {

// for weight in net.state_dict().values(): dist.broadcast(weight, 0)
bool sends_weights(const Program& program, const CallRef& broadcast) {
  const Ref loop = program.innermost_loop(broadcast.ref());
  if (loop.kind() != Kind::for_statement) return false;
  const std::string_view over = loop.child(Field::right).text();
  for (const char* weights : {".state_dict()", ".parameters()", ".buffers()"})
    if (pitfalls::facts::contains(over, weights)) return true;
  return false;
}

}  // namespace

bool ranks_talk(const Program& program) {
  for (const Api api : {Api::all_reduce, Api::all_gather, Api::reduce, Api::gather})
    if (program.uses(api)) return true;
  const auto broadcasts = program.calls(Api::broadcast);
  return !std::all_of(broadcasts.begin(), broadcasts.end(),
                      [&](const CallRef& broadcast) { return sends_weights(program, broadcast); });
}

}  // namespace bench::diagnose
