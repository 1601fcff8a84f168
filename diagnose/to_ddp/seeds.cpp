#include "diagnose/to_ddp/seeds.hpp"

#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"

#include <algorithm>

namespace bench::diagnose {
namespace {

using pitfalls::facts::contains;

// A number that the script fixes or an option gives; random.randint(1, 9) and time.time() give each
// rank another.
bool is_alike(const Program& program, const CallRef& seed) {
  const Ref number = seed.positional(0) ? seed.positional(0) : seed.keyword("seed");
  if (!number) return seed.call->name == "seed_everything" || seed.call->name == "set_seed";
  return number.kind() != Kind::none_literal && !program.comes_from_rank(number) &&
         !pitfalls::says_any(pitfalls::text_behind(program, number),
                             {"rand(", "randint", "randrange", "random()", "randbits", "urandom",
                              "initial_seed", "time(", "now(", "rank"});
}

bool seeds_all(const Program& program, const CallRef& call) {
  return (call.call->name == "seed_everything" || call.call->name == "set_seed") &&
         !program.callee(call);
}

// torch.cuda.manual_seed(7) seeds no loader; a generator of its own seeds nothing else.
bool seeds(const Program& program, const CallRef& call, Draws draws) {
  const std::string_view path = call.call->path;
  if (seeds_all(program, call)) return true;
  switch (draws) {
    case Draws::python:
      return path == "random.seed";
    case Draws::numpy:
      return call.call->name == "seed" && contains(path, "numpy.random");
    case Draws::torch:
      return call.call->api == Api::manual_seed && !contains(path, "cuda") &&
             !contains(path, "Generator");
  }
  return false;
}

// What runs without a GPU alone is run by no rank.
bool runs_beside_gpu(const Left& left, const CallRef& seed) {
  const auto guards = left.program.guards(seed.ref());
  const Ref number = seed.positional(0);
  return left.runs_on_every_rank(seed.ref()) &&
         !(number && pitfalls::says_any(number.text(), {"worker"})) &&  // of a loader
         std::none_of(guards.begin(), guards.end(), [](const Guard& guard) {
           return !guard.holds && contains(guard.condition.text(), "cuda");
         });
}

}  // namespace

std::vector<CallRef> seeds_of(const Left& left, Draws draws) {
  std::vector<CallRef> out;
  const auto add = [&](const CallRef& call) {
    if (seeds(left.program, call, draws) && runs_beside_gpu(left, call)) out.push_back(call);
  };
  for (const std::string_view name : {"seed", "seed_everything", "set_seed"})
    for (const CallRef& call : left.program.calls_named(name)) add(call);
  for (const CallRef& call : left.program.calls(Api::manual_seed)) add(call);
  return out;
}

CallRef common_seed(const Left& left, Draws draws) {
  CallRef out;
  for (const CallRef& seed : seeds_of(left, draws)) {
    if (!is_alike(left.program, seed)) return {};
    if (!out || (seed.module == &left.program.root() && out.module != seed.module)) out = seed;
  }
  return out;
}

}  // namespace bench::diagnose
