#include "scenarios/pitfalls/frameworks/trainer_hooks.hpp"

#include "scenarios/pitfalls/program/words.hpp"

#include <algorithm>

namespace bench::pitfalls::facts {

using diagnose::Api;

bool is_trainer_hook(const Program& program, diagnose::ClassRef cls, std::string_view name) {
  for (const std::string_view hook :
       {"save_model", "_save_checkpoint", "compute_loss", "training_step", "evaluate",
        "evaluation_loop", "prediction_loop", "prediction_step", "create_optimizer",
        "create_scheduler", "create_optimizer_and_scheduler", "get_train_dataloader",
        "get_eval_dataloader", "log"})
    if (name == hook) return cls && program.derives_from(cls, Api::hf_trainer);
  return false;
}

bool is_model_of_hook(const Program& program, Ref model) {
  constexpr std::size_t kModel = 1;  // behind self
  const auto function = program.enclosing_function(model);
  if (!function) return false;
  const auto& parameters = function.function->parameters;
  const std::string_view name = function.function->name;
  return (name == "compute_loss" || name == "training_step") && parameters.size() > kModel &&
         parameters[kModel].name == model.text() &&
         is_trainer_hook(program, program.enclosing_class(model), name);
}

bool may_have_another_engine(const Program& program) {
  for (const char* engine : {"deepspeed", "fsdp", "FullyShardedDataParallel"})
    if (program.mentions(engine)) return true;
  return false;
}

namespace {

// def get_eval_dataloader(self): return DataLoader(...), of a Trainer's class: nothing gives each
// process a part of it.
bool makes_whole_loader(const Program& program, diagnose::ClassRef cls, std::string_view name) {
  const auto own = cls ? program.method_on_self(cls, name) : diagnose::FunctionRef{};
  return own && !says_any(own.module->text(own.function->node),
                          {"prepare", "super(", "sampler", "rank", "process_index", "shard"});
}

// def evaluation_loop(self, dataloader, description): what get_eval_dataloader() made.
bool is_loader_of_loop(const Program& program, Ref loader) {
  constexpr std::size_t kLoader = 1;  // behind self
  const auto function = program.enclosing_function(loader);
  if (!function) return false;
  const auto& parameters = function.function->parameters;
  const std::string_view name = function.function->name;
  const auto cls = program.enclosing_class(loader);
  return (name == "evaluation_loop" || name == "prediction_loop") && parameters.size() > kLoader &&
         parameters[kLoader].name == loader.text() && is_trainer_hook(program, cls, name) &&
         !makes_whole_loader(program, cls, "get_eval_dataloader") &&
         !makes_whole_loader(program, cls, "get_test_dataloader");
}

}  // namespace

bool is_loader_of_trainer(const Program& program, Ref iterable) {
  if (is_loader_of_loop(program, program.strip_iterable(iterable))) return true;
  const auto& sources = program.sources(program.strip_iterable(iterable));
  return std::any_of(sources.begin(), sources.end(), [&](const diagnose::Source& source) {
    const CallRef made = program.as_call(source.ref);
    if (!made || !made.receiver()) return false;
    const std::string_view name = made.call->name;
    if (name != "get_eval_dataloader" && name != "get_test_dataloader") return false;
    const Ref trainer = made.receiver();
    const auto cls = program.enclosing_class(made.ref());
    if (trainer.text() == "super()") return program.derives_from(cls, Api::hf_trainer);
    if (trainer.text() == "self")
      return program.derives_from(cls, Api::hf_trainer) && !makes_whole_loader(program, cls, name);
    return program.comes_from(trainer, Api::hf_trainer) &&
           !makes_whole_loader(program, program.class_of(trainer), name);
  });
}

}  // namespace bench::pitfalls::facts
