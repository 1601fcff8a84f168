#include "scenarios/pitfalls/frameworks/trainer_loaders.hpp"

#include "scenarios/pitfalls/frameworks/trainer_hooks.hpp"
#include "scenarios/pitfalls/program/words.hpp"

#include <algorithm>
#include <string_view>

namespace bench::pitfalls {

using diagnose::ClassRef;
using diagnose::FunctionRef;

namespace {

constexpr std::string_view kMaker = "get_train_dataloader";

// What the method says of ranks, of Accelerate, of a sampler or of runs in one process: it may
// split the data, or make this loader only where there is nothing to split.
bool may_split_data(FunctionRef method) {
  return says_any(method.module->text(method.function->node),
                  {"sampler", "prepare", "rank", "world_size", "num_processes", "process_index",
                   "shard", "parallel", "distributed", "n_gpu"});
}

// return loader: not len(loader), and not self.dealt_out(loader), which may prepare it.
bool is_returned(const Program& program, FunctionRef method, const CallRef& loader) {
  const auto& returns = method.function->returns;
  return std::any_of(returns.begin(), returns.end(), [&](diagnose::NodeId value) {
    const CallRef made = program.made_by({method.module, value});
    return made && made.ref() == loader.ref();
  });
}

// def train(self) that goes over the loader in a way of its own.
bool trains_itself(const Program& program, ClassRef cls) {
  for (const char* name : {"train", "_inner_training_loop"})
    if (const FunctionRef own = program.method_on_self(cls, name))
      if (!says_any(own.module->text(own.function->node), {"super("})) return true;
  return false;
}

// def get_train_dataloader(self): return self.accelerator.prepare(super().get_train_dataloader()).
bool is_made_anew_below(const Program& program, ClassRef cls) {
  const auto& derived = program.derived_of(cls);
  return std::any_of(derived.begin(), derived.end(), [](const ClassRef& below) {
    return below.module->method(*below.cls, kMaker) != nullptr;
  });
}

}  // namespace

bool trainer_goes_over(const Program& program, const CallRef& loader) {
  const FunctionRef method = program.enclosing_function(loader.ref());
  if (!method || method.function->name != kMaker) return false;
  const ClassRef cls = program.enclosing_class(loader.ref());
  return facts::is_trainer_hook(program, cls, kMaker) && !may_split_data(method) &&
         is_returned(program, method, loader) && !trains_itself(program, cls) &&
         !is_made_anew_below(program, cls);
}

}  // namespace bench::pitfalls
