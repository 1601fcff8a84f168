// What ranks draw at random, and should draw alike or should not.
#include "diagnose/to_ddp/remaining_topics.hpp"
#include "diagnose/to_ddp/supplies.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"

#include <algorithm>

namespace bench::diagnose {
namespace {

namespace facts = pitfalls::facts;

// A number that the script fixes; random.randint(1, 9) and time.time() give each rank another.
bool is_alike(const Program& program, Ref seed) {
  return seed && !program.comes_from_rank(seed) &&
         !pitfalls::says_any(pitfalls::text_behind(program, seed), {"rand", "time", "rank"});
}

// The call that seeds torch alike on all ranks.
CallRef common_seed(const Left& left) {
  CallRef seed;
  for (const CallRef& each : left.program.calls(Api::manual_seed)) {
    // A generator of its own seeds nothing else.
    if (facts::contains(each.call->path, "Generator")) continue;
    if (!left.runs_on_every_rank(each.ref())) continue;
    if (!is_alike(left.program, each.positional(0))) return {};
    if (!seed || each.module == &left.program.root()) seed = each;
  }
  return seed;
}

bool is_told(const Left& left, Ref place) {
  return std::any_of(left.told.begin(), left.told.end(), [&](const Told& each) {
    return std::find(each.places.begin(), each.places.end(), place) != each.places.end();
  });
}

bool draws_noise(const CallRef& call) {
  constexpr std::string_view kNoise[] = {"torch.randn", "torch.rand", "torch.randn_like",
                                         "torch.rand_like"};
  const std::string_view path = call.call->path;
  return (std::find(std::begin(kNoise), std::end(kNoise), path) != std::end(kNoise) ||
          call.call->name == "normal_" || call.call->name == "uniform_") &&
         !call.keyword("generator");
}

// random.shuffle(items), or a function of NumPy that puts them into an order.
bool shuffles(const CallRef& call, bool numpy) {
  const std::string_view path = call.call->path;
  return numpy ? path == "numpy.random.shuffle" || path == "numpy.random.permutation"
               : path == "random.shuffle";
}

bool is_seeded(const Left& left, bool numpy) {
  if (!left.program.calls_named("seed_everything").empty()) return true;
  const auto seeds = left.program.calls_named("seed");
  return std::any_of(seeds.begin(), seeds.end(), [&](const CallRef& seed) {
    const bool of_numpy = facts::contains(seed.call->path, "numpy.random");
    return of_numpy == numpy && (of_numpy || seed.call->path == "random.seed") &&
           is_alike(left.program, seed.positional(0));
  });
}

// In the constructor of a data set, which every rank runs once; or of lists of samples beside it.
bool orders_samples(const Program& program, const CallRef& call) {
  const FunctionRef function = program.enclosing_function(call.ref());
  if (!facts::in_dataset(program, call.ref())) {
    const Ref list = call.positional(0);
    return pitfalls::says_any(list.text(), {"train", "file", "path", "list", "image", "img", "data",
                                            "item", "sample", "ids", "idx", "indices", "lines"}) &&
           !pitfalls::says_any(list.text(), {"val", "test"}) &&
           facts::training_loop_of(program, call.ref()) == nullptr;
  }
  if (!function) return false;
  if (function.function->name == "__init__") return true;
  const auto& sites = program.call_sites(function);
  return !sites.empty() && std::all_of(sites.begin(), sites.end(), [&](const CallRef& site) {
    const FunctionRef caller = program.enclosing_function(site.ref());
    return caller && caller.function->name == "__init__";
  });
}

}  // namespace

void tell_noise_of_one_seed(Left& left) {
  const CallRef seed = common_seed(left);
  if (!seed) return;
  std::vector<Ref> places;
  for (const TrainingLoop* loop : trainings(left))
    for (const CallRef& call : facts::calls_in(loop->batches))
      if (draws_noise(call) && left.runs_on_every_rank(call.ref()) &&
          !left.program.under_no_grad(call.ref()))
        places.push_back(call.ref());
  left.tell(Harm::figures, places,
            "every rank draws the same numbers here, as the seed of " + place_of(seed.ref()) +
                " is one for all: the samples of N ranks get N times the same noise. Seed with "
                "seed + dist.get_rank() behind the wrapper.");
}

void tell_orders_of_ranks(Left& left) {
  const auto loops = trainings(left);
  const bool shares = std::any_of(loops.begin(), loops.end(), [&](const TrainingLoop* loop) {
    const auto supplies = supplies_of(left, *loop);
    return std::any_of(supplies.begin(), supplies.end(),
                       [](const Supply& each) { return each.share == Share::shared; });
  });
  if (!shares) return;
  std::vector<Ref> places;
  for (const bool numpy : {false, true}) {
    if (is_seeded(left, numpy)) continue;
    for (const std::string_view name : {"shuffle", "permutation"})
      for (const CallRef& call : left.program.calls_named(name))
        if (shuffles(call, numpy) && orders_samples(left.program, call) &&
            left.runs_on_every_rank(call.ref()) && !left.is_found(call.ref(), "DDP035") &&
            !is_told(left, call.ref()))
          places.push_back(call.ref());
  }
  left.tell(Harm::figures, places,
            "every rank puts the samples into a random order of its own, as no seed is one for "
            "all: the shares that DistributedSampler cuts from it overlap, and leave samples out. "
            "Draw it with a fixed seed (random.Random(0)).");
}

}  // namespace bench::diagnose
