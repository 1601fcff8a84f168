#include "diagnose/to_ddp/loader_loops.hpp"

#include "scenarios/pitfalls/data/loaders.hpp"
#include "scenarios/pitfalls/program/argument_for.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"

#include <algorithm>

namespace bench::diagnose {
namespace {

namespace facts = pitfalls::facts;

bool gives_on(Ref loop) {
  const auto& tree = loop.module->tree();
  for (NodeId node = loop.node; node < tree[loop.node].last; ++node)
    if (tree[node].kind == Kind::yield_expression) return true;
  return false;
}

bool is_literal(Ref node) {
  const Kind kind = node.kind();
  return kind == Kind::integer || kind == Kind::floating || kind == Kind::string ||
         kind == Kind::true_literal || kind == Kind::false_literal || kind == Kind::none_literal;
}

// train_step, fit_batch, learner; not test_step, step_stats, train_transform or a scaler's fit.
bool is_named_for_steps(const CallRef& call) {
  const auto words = pitfalls::words_of_name(call.call->name);
  const auto has = [&](std::string_view word) {
    return std::find(words.begin(), words.end(), word) != words.end();
  };
  const std::string_view owner = call.receiver() ? call.receiver().text() : std::string_view{};
  if (words.empty() ||
      pitfalls::says_any(call.call->name,
                         {"eval", "val", "test", "infer", "predict", "log", "print", "num", "stat",
                          "mean", "std", "norm", "acc", "transform", "augment"}) ||
      pitfalls::says_any(owner, {"prof", "sched", "bar", "log", "writer", "time", "meter"}))
    return false;
  if (has("train") || has("trainer") || has("training") || words.back() == "step" ||
      words.back() == "learn" || words.back() == "learner" || words.back() == "optimize" ||
      words.back() == "optimise")
    return true;
  return has("fit") && (words.size() > 1 ? !has("partial")
                                         : pitfalls::says_any(owner, {"model", "net", "train"}));
}

// The part of a loop or a comprehension that names what it goes over.
std::vector<Ref> passes_of(const Module& module) {
  std::vector<Ref> out;
  for (const NodeId node : module.loops())
    if (module.tree()[node].kind == Kind::for_statement) out.push_back({&module, node});
  for (NodeId node = 0; node < module.tree().size(); ++node)
    if (module.tree()[node].kind == Kind::for_in_clause) out.push_back({&module, node});
  return out;
}

}  // namespace

// Also optimizer.step(closure_of(x)).
bool hands_to_training(const Program& program, Ref loop) {
  const auto calls = facts::calls_in(loop);
  return std::any_of(calls.begin(), calls.end(), [&](const CallRef& call) {
    const auto given = facts::arguments_of(call);
    return is_named_for_steps(call) && !program.callee(call) && !program.class_of_call(call) &&
           !program.under_no_grad(call.ref()) &&
           std::any_of(given.begin(), given.end(), [](Ref each) { return !is_literal(each); });
  });
}

std::vector<CallRef> loaders_within(const Program& program, Ref object) {
  std::vector<CallRef> out;
  const ClassRef cls = program.class_of(object);
  if (!cls) return out;
  for (const std::string_view name : {"__iter__", "__next__"}) {
    const FunctionRef method = program.method(cls, name);
    if (!method) continue;
    const auto& tree = method.module->tree();
    const NodeId body = method.function->body;
    for (NodeId node = body; node < tree[body].last; ++node) {
      if (tree[node].kind != Kind::attribute) continue;
      for (const CallRef& loader : pitfalls::loaders_of(program, {method.module, node}))
        if (std::none_of(out.begin(), out.end(),
                         [&](const CallRef& each) { return each.ref() == loader.ref(); }))
          out.push_back(loader);
    }
  }
  return out;
}

std::vector<PassOver> passes_without_training(const Program& program) {
  std::vector<PassOver> out;
  const auto& loops = program.training_loops();
  for (const Module* module : program.modules())
    for (const Ref loop : passes_of(*module)) {
      const auto loaders = pitfalls::loaders_of(program, loop.child(Field::right));
      if (loaders.empty()) continue;
      const bool trains = std::any_of(loops.begin(), loops.end(), [&](const TrainingLoop& each) {
        return each.batches.module == module &&
               module->tree().contains(loop.node, each.batches.node);
      });
      if (trains || gives_on(loop) || hands_to_training(program, loop)) continue;
      for (const CallRef& each : loaders) out.push_back({loop, each});
    }
  return out;
}

std::set<Ref> drawn_without_training(const Program& program) {
  std::set<Ref> out;
  for (const PassOver& pass : passes_without_training(program)) out.insert(pass.loader.ref());
  return out;
}

std::set<Ref> drawn_without_gradients(const Program& program) {
  std::set<Ref> out;
  for (const PassOver& pass : passes_without_training(program))
    if (program.under_no_grad(pass.loop)) out.insert(pass.loader.ref());
  return out;
}

}  // namespace bench::diagnose
