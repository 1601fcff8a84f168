// What ranks draw at random, and should draw alike or should not.
#include "diagnose/to_ddp/remaining/topics.hpp"
#include "diagnose/to_ddp/seeds.hpp"
#include "diagnose/to_ddp/supplies.hpp"
#include "scenarios/pitfalls/program/argument_for.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"

#include <algorithm>

namespace bench::diagnose {
namespace {

namespace facts = pitfalls::facts;

bool draws_numbers(const CallRef& call) {
  constexpr std::string_view kNoise[] = {"torch.randn", "torch.rand", "torch.randn_like",
                                         "torch.rand_like"};
  const std::string_view path = call.call->path;
  return std::find(std::begin(kNoise), std::end(kNoise), path) != std::end(kNoise) ||
         ((call.call->name == "normal_" || call.call->name == "uniform_") &&
          !facts::contains(path, "init"));
}

// torch.rand(1), torch.rand(()): one number, for a decision that all ranks have to take alike.
bool draws_one_number(const CallRef& call) {
  if (call.receiver() && !facts::contains(call.call->path, "torch.")) return false;
  if (call.call->name.ends_with("_like") || call.has_splat()) return false;
  for (std::size_t i = 0; const Ref size = call.positional(i); ++i)
    if (size.text() != "1" && size.text() != "()" && size.text() != "[]" && size.text() != "(1,)" &&
        size.text() != "[1]")
      return false;
  return true;
}

// Noise for gradients or parameters, which is the same for all ranks as these are.
bool is_for_parameters(const Program& program, const CallRef& call) {
  std::string text(call.receiver().text());
  for (const Ref given : facts::arguments_of(call)) text += " " + std::string(given.text());
  if (pitfalls::says_any(text, {"grad", "param", "weight", "bias"})) return true;
  for (Ref loop = program.innermost_loop(call.ref()); loop && loop.kind() == Kind::for_statement;) {
    if (pitfalls::says_any(loop.child(Field::right).text(),
                           {"parameters(", "params", "state_dict"}))
      return true;
    const NodeId parent = loop.module->tree()[loop.node].parent;
    loop = parent == kNoNode ? Ref{} : program.innermost_loop(loop.with(parent));
  }
  return false;
}

bool joins_samples(const Program& program, const CallRef& call) {
  return draws_numbers(call) && !call.keyword("generator") && !draws_one_number(call) &&
         !is_for_parameters(program, call);
}

// random.random() < p, torch.rand(1).item() < p: the generator of torch decides.
bool decides(const CallRef& call) {
  return (draws_numbers(call) && draws_one_number(call)) ||
         ((call.call->path == "torch.randint" || call.call->path == "torch.randperm") &&
          !call.keyword("generator"));
}

// random.shuffle(items), or a function of NumPy that puts them into an order.
bool shuffles(const CallRef& call, Draws draws) {
  const std::string_view path = call.call->path;
  return draws == Draws::numpy
             ? path == "numpy.random.shuffle" || path == "numpy.random.permutation"
             : path == "random.shuffle";
}

bool names(std::string_view text, std::string_view name) {
  const auto is_part = [](char each) {
    return std::isalnum(static_cast<unsigned char>(each)) != 0 || each == '_';
  };
  for (std::size_t at = text.find(name); at != std::string_view::npos;
       at = text.find(name, at + 1)) {
    const std::size_t end = at + name.size();
    if ((at == 0 || !is_part(text[at - 1])) && (end == text.size() || !is_part(text[end])))
      return true;
  }
  return false;
}

bool is_dataset(const Program& program, ClassRef cls) {
  return cls && program.method(cls, "__getitem__");
}

// dataset.items of a data set, also by the name of a parameter.
bool is_of_dataset(const Program& program, Ref list, int depth = 0) {
  if (list.kind() == Kind::attribute) {
    const Ref owner = list.child(Field::object);
    return is_dataset(program, program.class_of(owner)) ||
           pitfalls::says_any(owner.text(), {"dataset", "data_set", "trainset", "train_set"});
  }
  const FunctionRef function = program.enclosing_function(list);
  if (depth > 0 || !facts::is_parameter(program, list) || !function) return false;
  const auto& sites = program.call_sites(function);
  return std::any_of(sites.begin(), sites.end(), [&](const CallRef& site) {
    const Ref given = facts::argument_for(site, function, list.text());
    return given && is_of_dataset(program, given, depth + 1);
  });
}

bool names_any(std::string_view text, const std::vector<std::string>& all) {
  return std::any_of(all.begin(), all.end(),
                     [&](const std::string& name) { return names(text, name); });
}

// The list's name, and those of what is taken from it below: train = files[:800].
std::vector<std::string> names_below(const Program& program, const CallRef& call, Ref list) {
  const std::string assigned(program.assigned_name(call.ref()));  // order = permutation(n)
  std::vector<std::string> out{assigned.empty() ? std::string(list.text()) : assigned};
  const FunctionRef function = program.enclosing_function(call.ref());
  const auto& tree = call.module->tree();
  for (NodeId node = call.call->node; node < tree.size(); ++node) {
    const Ref assignment{call.module, node};
    if (assignment.kind() != Kind::assignment ||
        program.enclosing_function(assignment) != function ||
        !names_any(assignment.child(Field::right).text(), out))
      continue;
    out.emplace_back(assignment.child(Field::left).text());
  }
  return out;
}

// What is shuffled goes on to a data set, a subset or a loader, or is what the function gives.
bool becomes_data(const Program& program, const CallRef& call, Ref list) {
  const auto all = names_below(program, call, list);
  const FunctionRef function = program.enclosing_function(call.ref());
  const Module& module = *call.module;
  const auto& tree = module.tree();
  // random.shuffle(transforms) gives no samples.
  const bool may_be_samples =
      pitfalls::says_any(list.text(), {"train", "file", "path", "list", "image", "img", "data",
                                       "item", "sample", "ids", "idx", "indices", "lines"});
  if (function && may_be_samples) {
    const NodeId body = function.function->body;
    for (NodeId node = body; node < tree[body].last; ++node)
      if (tree[node].kind == Kind::return_statement && names_any(tree.text(node), all)) return true;
  }
  return std::any_of(module.calls().begin(), module.calls().end(), [&](const Call& each) {
    const CallRef use{&module, &each};
    const bool takes = pitfalls::says_any(each.name, {"dataset", "subset", "loader", "sampler"});
    return each.node > call.call->node && program.enclosing_function(use.ref()) == function &&
           (takes || is_dataset(program, program.class_of_call(use))) &&
           names_any(use.ref().child(Field::arguments).text(), all);
  });
}

// In the constructor of a data set, which every rank runs once; or of lists of samples beside it.
bool orders_samples(const Program& program, const CallRef& call) {
  const FunctionRef function = program.enclosing_function(call.ref());
  if (!facts::in_dataset(program, call.ref())) {
    const Ref list = call.positional(0);
    return list && !pitfalls::says_any(list.text(), {"val", "test"}) &&
           facts::training_loop_of(program, call.ref()) == nullptr &&
           (becomes_data(program, call, list) || is_of_dataset(program, list));
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
  const CallRef seed = common_seed(left, Draws::torch);
  if (!seed) return;
  std::vector<Ref> places;
  Ref decision;
  for (const TrainingLoop* loop : trainings(left))
    for (const CallRef& call : facts::calls_in(loop->batches)) {
      if (!left.runs_on_every_rank(call.ref())) continue;
      if (decides(call)) decision = call.ref();
      if (joins_samples(left.program, call) && !left.program.under_no_grad(call.ref()))
        places.push_back(call.ref());
    }
  const std::string advice =
      decision
          ? "Draw it with a generator of the rank's own (generator=torch.Generator(device)."
            "manual_seed(seed + dist.get_rank())): another seed for all would let ranks decide "
            "each for itself at " +
                place_of(decision) + "."
          : "Seed with seed + dist.get_rank() behind the wrapper.";
  left.tell(Harm::figures, places,
            "every rank draws the same numbers here, as the seed of " + place_of(seed.ref()) +
                " is one for all: the samples of N ranks get N times the same noise. " + advice);
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
  for (const Draws draws : {Draws::python, Draws::numpy}) {
    if (common_seed(left, draws)) continue;
    for (const std::string_view name : {"shuffle", "permutation"})
      for (const CallRef& call : left.program.calls_named(name))
        if (shuffles(call, draws) && orders_samples(left.program, call) &&
            left.runs_on_every_rank(call.ref()) && !left.is_found(call.ref(), "DDP035") &&
            !left.is_told(call.ref()))
          places.push_back(call.ref());
  }
  left.tell(Harm::figures, places,
            "every rank puts the samples into a random order of its own, as no seed is one for "
            "all: the shares that DistributedSampler cuts from it overlap, and leave samples out. "
            "Draw it with a fixed seed (random.Random(0)).");
}

}  // namespace bench::diagnose
