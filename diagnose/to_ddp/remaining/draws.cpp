// What ranks draw at random, and should draw alike or should not.
#include "diagnose/to_ddp/remaining/topics.hpp"
#include "diagnose/to_ddp/seeds.hpp"
#include "diagnose/to_ddp/supplies.hpp"
#include "scenarios/pitfalls/program/argument_for.hpp"
#include "scenarios/pitfalls/program/edits.hpp"
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

bool is_one(Ref size) {
  constexpr std::string_view kOnes[] = {"1", "()", "[]", "(1,)", "[1]"};
  return std::find(std::begin(kOnes), std::end(kOnes), size.text()) != std::end(kOnes);
}

// torch.rand(1), torch.rand(()): one number, for a decision that all ranks have to take alike.
bool draws_one_number(const CallRef& call) {
  if (call.receiver() && !facts::contains(call.call->path, "torch.")) return false;
  if (call.call->name.ends_with("_like") || call.has_splat()) return false;
  for (std::size_t i = 0; const Ref size = call.positional(i); ++i)
    if (!is_one(size)) return false;
  return true;
}

// torch.randint(0, steps, (n,)): a number for each sample, as the step of its noise.
bool draws_for_samples(const CallRef& call) {
  if (call.call->path != "torch.randint") return false;
  const Ref last = call.positional(2) ? call.positional(2) : call.positional(1);
  const Ref size = call.keyword("size") ? call.keyword("size") : last;
  return (size.kind() == Kind::tuple || size.kind() == Kind::list) && !is_one(size);
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
  return (draws_for_samples(call) || (draws_numbers(call) && !draws_one_number(call))) &&
         !call.keyword("generator") && !is_for_parameters(program, call);
}

// random.random() < p, torch.rand(1).item() < p: the generator of torch decides.
bool decides(const CallRef& call) {
  return (draws_numbers(call) && draws_one_number(call)) ||
         ((call.call->path == "torch.randint" || call.call->path == "torch.randperm") &&
          !draws_for_samples(call) && !call.keyword("generator"));
}

// torch.rand(n, 8) <= torch.rand(1) * ratio: the one number is for the same samples.
bool is_beside_noise(const Program& program, const CallRef& draw) {
  const auto calls = facts::calls_in(pitfalls::statement_of(draw.ref()));
  return std::any_of(calls.begin(), calls.end(), [&](const CallRef& call) {
    return call.call != draw.call && joins_samples(program, call);
  });
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

bool is_in_module(const Program& program, Ref node) {
  const ClassRef cls = program.enclosing_class(node);
  return cls && program.derives_from(cls, Api::module_class);
}

// Pictures and figures beside the training.
bool is_beside_steps(const Program& program, FunctionRef function) {
  return program.is_evaluation({function.module, function.function->body}) ||
         facts::contains(function.module->text(function.function->body), "no_grad") ||
         pitfalls::says_any(function.function->name,
                            {"sample", "save", "vis", "plot", "interp", "sheet", "eval", "test",
                             "valid", "generate", "infer", "log", "init"});
}

// Of the loop, and of the functions that make its steps: trainer.step(batch). What a model draws
// for itself, as for dropout, is its own.
std::vector<CallRef> calls_of_steps(const Program& program, const TrainingLoop& loop) {
  std::vector<CallRef> out = facts::calls_in(loop.batches);
  for (const FunctionRef& step : program.reached(loop.batches)) {
    const Ref body{step.module, step.function->body};
    if (is_in_module(program, body) || facts::in_dataset(program, body) ||
        is_beside_steps(program, step))
      continue;
    const auto calls = facts::calls_in(body);
    out.insert(out.end(), calls.begin(), calls.end());
  }
  return out;
}

}  // namespace

void tell_noise_of_one_seed(Left& left) {
  const CallRef seed = common_seed(left, Draws::torch);
  if (!seed) return;
  std::vector<Ref> places;
  Ref decision;
  for (const TrainingLoop* loop : trainings(left))
    for (const CallRef& call : calls_of_steps(left.program, *loop)) {
      if (!left.runs_on_every_rank(call.ref())) continue;
      if (decides(call) && !is_beside_noise(left.program, call)) decision = call.ref();
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
