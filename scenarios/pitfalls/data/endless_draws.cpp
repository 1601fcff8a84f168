#include "scenarios/pitfalls/data/endless_draws.hpp"

#include "scenarios/pitfalls/program/argument_for.hpp"
#include "scenarios/pitfalls/program/words.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::ClassRef;
using diagnose::Field;
using diagnose::FunctionRef;
using diagnose::Kind;
using diagnose::NodeId;

namespace {

constexpr int kNested = 3;  // a data set of patches, made of one of images, made of one of patients

// while True: ... yield item, which nothing leaves.
bool is_endless(FunctionRef iter) {
  const auto& module = *iter.module;
  const auto& tree = module.tree();
  const auto inside = [&](NodeId node) { return tree.contains(iter.function->body, node); };
  const auto& breaks = module.nodes_of(Kind::break_statement);
  return std::none_of(breaks.begin(), breaks.end(), inside) &&
         std::any_of(module.loops().begin(), module.loops().end(), [&](NodeId loop) {
           const NodeId condition = tree.child(loop, Field::condition);
           return inside(loop) && tree[loop].kind == Kind::while_statement &&
                  condition != diagnose::kNoNode && tree[condition].kind == Kind::true_literal;
         });
}

// np.random.randint(...), random.choice(...), torch.randint(...), rng.integers(...).
bool draws(const Program& program, FunctionRef iter) {
  return program.subtree_calls({iter.module, iter.function->body}, [](const CallRef& call) {
    const std::string_view path = call.call->path;
    return path.starts_with("random.") || path.starts_with("numpy.random.") ||
           path.starts_with("torch.rand") ||
           says_any(call.receiver().text(), {"rng", "random", "generator"});
  });
}

bool draws_at_random(const Program& program, Ref dataset, int depth) {
  const ClassRef cls = program.class_of(dataset);
  const FunctionRef iter = cls ? program.method(cls, "__iter__") : FunctionRef{};
  if (!iter || !is_endless(iter)) return false;
  if (draws(program, iter)) return true;
  if (depth >= kNested) return false;
  for (const diagnose::Source& source : program.sources(dataset))
    if (const CallRef made = program.as_call(source.ref))
      for (Ref given : facts::arguments_of(made)) {
        const CallRef iterator = program.made_by(given);
        if (iterator && iterator.call->name == "iter") given = iterator.positional(0);
        if (given.kind() == Kind::identifier && draws_at_random(program, given, depth + 1))
          return true;
      }
  return false;
}

// torch.manual_seed(0) on every rank; the seed of a worker of a loader is drawn on each.
bool seeds_alike(const Program& program) {
  for (const diagnose::Module* module : program.modules())
    for (const diagnose::Call& made : module->calls()) {
      const std::string name = facts::lowered(made.name);
      if (!facts::contains(name, "seed") || name == "initial_seed") continue;
      const Ref value = CallRef{module, &made}.positional(0);
      if (value && !program.comes_from_rank(value) &&
          !holds_any(value.text(), {"worker", "initial_seed"}))
        return true;
    }
  return false;
}

}  // namespace

bool draws_its_own_samples(const Program& program, Ref dataset) {
  return draws_at_random(program, dataset, 0) && !seeds_alike(program);
}

}  // namespace bench::pitfalls
