#include "scenarios/pitfalls/frameworks/lightning_dp.hpp"

#include "scenarios/pitfalls/frameworks/trainer.hpp"
#include "scenarios/pitfalls/program/facts.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::ClassRef;
using diagnose::FunctionRef;

namespace {

// strategy="dp", and accelerator="dp" or distributed_backend="dp" of the older versions.
bool asks_for_dp(const Program& program, const trainer::Use& use) {
  for (const std::string_view name : {"strategy", "accelerator", "distributed_backend"}) {
    const trainer::Argument* argument = use.find(name);
    if (argument == nullptr) continue;
    const auto choices = trainer::choices(program, *argument);
    const bool is_dp =
        !choices.empty() && std::all_of(choices.begin(), choices.end(), [](const auto& choice) {
          return choice.is_string() && choice.string == "dp";
        });
    if (is_dp) return true;
  }
  return false;
}

bool trains_by_dp(const Program& program) {
  const auto uses = trainer::uses(program);
  return !uses.empty() && std::all_of(uses.begin(), uses.end(), [&](const trainer::Use& use) {
    return asks_for_dp(program, use);
  });
}

void add_steps(const Program& program, ClassRef cls, std::vector<FunctionRef>& out) {
  constexpr std::size_t kMost = 64;
  const auto add = [&](FunctionRef method) {
    if (method && std::find(out.begin(), out.end(), method) == out.end()) out.push_back(method);
  };
  std::size_t next = out.size();
  for (const std::string_view step :
       {"training_step", "validation_step", "test_step", "predict_step"})
    add(program.method(cls, step));
  for (; next < out.size() && out.size() < kMost; ++next)
    for (const CallRef& call : facts::calls_in({out[next].module, out[next].function->body}))
      if (call.receiver() && call.receiver().text() == "self")
        add(program.method(cls, call.call->name));
}

}  // namespace

std::vector<FunctionRef> steps_of_module(const Program& program, ClassRef cls) {
  std::vector<FunctionRef> out;
  add_steps(program, cls, out);
  return out;
}

std::vector<FunctionRef> steps_of_replicas(const Program& program) {
  std::vector<FunctionRef> out;
  if (!program.uses(Api::lightning_trainer) || !trains_by_dp(program)) return out;
  for (const diagnose::Module* module : program.modules())
    for (const diagnose::Class& cls : module->classes())
      if (program.derives_from({module, &cls}, Api::lightning_module))
        add_steps(program, {module, &cls}, out);
  return out;
}

}  // namespace bench::pitfalls
