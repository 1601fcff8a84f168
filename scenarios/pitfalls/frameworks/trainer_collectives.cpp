#include "scenarios/pitfalls/frameworks/trainer_collectives.hpp"

#include "scenarios/pitfalls/frameworks/trainer.hpp"
#include "scenarios/pitfalls/program/facts.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::RankTest;

namespace {

// One rank makes a Trainer of its own, or it is made for one device: Trainer(devices=1) for a test.
bool is_of_one_process(const Program& program, const CallRef& made) {
  if (program.guarded_by_rank(made.ref()) != RankTest::none) return true;
  const auto uses = trainer::uses(program);
  return std::any_of(uses.begin(), uses.end(), [&](const trainer::Use& use) {
    return use.call.call == made.call &&
           (trainer::is_one(use.find("devices")) || trainer::is_one(use.find("gpus")));
  });
}

void add_methods(const Program& program, Api api, std::initializer_list<const char*> methods,
                 std::vector<CallRef>& out) {
  if (!program.uses(api)) return;
  for (const char* method : methods)
    for (const CallRef& call : program.calls_named(method)) {
      const CallRef made = call.receiver() ? program.origin(call.receiver(), api) : CallRef{};
      if (made && !is_of_one_process(program, made)) out.push_back(call);
    }
}

// self.evaluate() in a class that derives from Hugging Face's Trainer.
void add_methods_on_self(const Program& program, std::vector<CallRef>& out) {
  if (!program.uses(Api::hf_trainer)) return;
  for (const char* method : {"evaluate", "predict"})
    for (const CallRef& call : program.calls_named(method))
      if (call.receiver() && call.receiver().text() == "self" &&
          program.derives_from(program.enclosing_class(call.ref()), Api::hf_trainer))
        out.push_back(call);
}

// The object through which Lightning offers the method: the module itself, which has all_gather()
// alone, the strategy of its Trainer, Fabric.
bool offers(const Program& program, Ref object, std::string_view method) {
  const std::string_view text = object.text();
  const std::string_view last = text.substr(text.rfind('.') + 1);
  if (method == "all_gather" && text == "self")
    return program.derives_from(program.enclosing_class(object), Api::lightning_module);
  if (method == "all_gather" && (text == "pl_module" || text == "lightning_module")) return true;
  return last == "strategy" || last == "fabric" || last == "training_type_plugin";
}

}  // namespace

std::vector<CallRef> lightning_collectives(const Program& program) {
  std::vector<CallRef> out;
  for (const char* package : {"pytorch_lightning", "lightning", "lightning_fabric"})
    if (program.imports(package)) {
      for (const char* method : {"all_gather", "all_reduce", "barrier", "broadcast", "reduce"})
        for (const CallRef& call : program.calls_named(method))
          if (call.receiver() && call.call->api == Api::none &&
              offers(program, call.receiver(), method))
            out.push_back(call);
      break;
    }
  return out;
}

std::vector<CallRef> trainer_collectives(const Program& program) {
  std::vector<CallRef> out;
  add_methods(program, Api::hf_trainer, {"evaluate", "predict", "train"}, out);
  add_methods_on_self(program, out);
  add_methods(program, Api::lightning_trainer, {"fit", "validate", "test", "predict"}, out);
  return out;
}

}  // namespace bench::pitfalls
