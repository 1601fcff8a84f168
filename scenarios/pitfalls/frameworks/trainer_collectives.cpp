#include "scenarios/pitfalls/frameworks/trainer_collectives.hpp"

#include "scenarios/pitfalls/frameworks/trainer.hpp"
#include "scenarios/pitfalls/program/facts.hpp"

#include <algorithm>
#include <map>
#include <string_view>
#include <vector>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::ClassRef;
using diagnose::FunctionRef;
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

// What self.name() may run: the class's own method, or else those of the classes derived from it.
std::vector<FunctionRef> own_methods(const Program& program, ClassRef cls, std::string_view name) {
  if (const FunctionRef own = program.method(cls, name)) return {own};
  std::vector<FunctionRef> out;
  for (const ClassRef& derived : program.derived_in_use(cls))
    if (const FunctionRef method = program.method(derived, name)) out.push_back(method);
  return out;
}

// self.evaluate() or super().evaluate() that means the method of Hugging Face's Trainer: no class
// of the program defines it.
bool is_method_of_library(const Program& program, const CallRef& call) {
  const ClassRef cls = program.enclosing_class(call.ref());
  if (!call.receiver() || !cls || !program.derives_from(cls, Api::hf_trainer)) return false;
  if (call.receiver().text() == "self") return own_methods(program, cls, call.call->name).empty();
  return call.receiver().text().starts_with("super(") &&
         !program.inherited_method(cls, call.call->name);
}

// Where all processes meet: the Trainer's own loops, and what gathers their results.
bool is_meeting(const Program& program, const CallRef& call) {
  for (const char* loop : {"evaluate", "predict", "evaluation_loop", "prediction_loop"})
    if (call.call->name == loop) return is_method_of_library(program, call);
  for (const char* gathers :
       {"gather", "gather_for_metrics", "gather_function", "_nested_gather", "nested_gather"})
    if (call.call->name == gathers) return true;
  return false;
}

// def predict(self, text), which asks the model of its own process, is no meeting; one that goes on
// to super().predict() is.
bool comes_to_meeting(const Program& program, FunctionRef method) {
  return program.subtree_calls({method.module, method.function->body},
                               [&](const CallRef& call) { return is_meeting(program, call); });
}

// All that self.name() may run comes to a meeting; so does the library's own method.
bool all_meet(const Program& program, ClassRef cls, std::string_view name) {
  const auto own = own_methods(program, cls, name);
  return std::all_of(own.begin(), own.end(),
                     [&](FunctionRef method) { return comes_to_meeting(program, method); });
}

// self.evaluate() in a class that derives from Hugging Face's Trainer.
void add_methods_on_self(const Program& program, std::vector<CallRef>& out) {
  if (!program.uses(Api::hf_trainer)) return;
  for (const char* name : {"evaluate", "predict"}) {
    std::map<const diagnose::Class*, bool> meets;  // what the call comes to in a class
    for (const CallRef& call : program.calls_named(name)) {
      const ClassRef cls = program.enclosing_class(call.ref());
      if (!call.receiver() || call.receiver().text() != "self" || !cls ||
          !program.derives_from(cls, Api::hf_trainer))
        continue;
      auto found = meets.find(cls.cls);
      if (found == meets.end()) found = meets.emplace(cls.cls, all_meet(program, cls, name)).first;
      if (found->second) out.push_back(call);
    }
  }
}

// trainer.predict(text) of a class that has a predict() of its own.
bool is_own_affair(const Program& program, const CallRef& call,
                   std::map<const diagnose::Function*, bool>& meets) {
  if (call.call->name != "evaluate" && call.call->name != "predict") return false;
  const ClassRef cls = program.class_of(call.receiver());
  if (!cls || !program.derives_from(cls, Api::hf_trainer)) return false;
  const auto own = program.method(cls, call.call->name);
  if (!own) return false;
  const auto found = meets.find(own.function);
  if (found != meets.end()) return !found->second;
  return !(meets[own.function] = comes_to_meeting(program, own));
}

void add_methods(const Program& program, Api api, std::initializer_list<const char*> methods,
                 std::vector<CallRef>& out) {
  if (!program.uses(api)) return;
  std::map<const diagnose::Function*, bool> meets;
  for (const char* method : methods)
    for (const CallRef& call : program.calls_named(method)) {
      const CallRef made = call.receiver() ? program.origin(call.receiver(), api) : CallRef{};
      if (made && !is_of_one_process(program, made) && !is_own_affair(program, call, meets))
        out.push_back(call);
    }
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

namespace {

// The Trainer is given what 2.0 took away, so the project runs with an older Lightning.
bool is_of_lightning_one(const Program& program) {
  if (program.mentions("DDPPlugin")) return true;
  const auto uses = trainer::uses(program);
  return std::any_of(uses.begin(), uses.end(), [](const trainer::Use& use) {
    for (const char* name :
         {"gpus", "checkpoint_callback", "terminate_on_nan", "resume_from_checkpoint"})
      if (use.find(name) != nullptr) return true;
    return false;
  });
}

}  // namespace

std::vector<CallRef> saves_of_lightning(const Program& program) {
  constexpr int kWaitingTrainer = 201;
  std::vector<CallRef> out;
  if ((!program.imports("pytorch_lightning") && !program.imports("lightning")) ||
      program.newest().lightning < kWaitingTrainer || is_of_lightning_one(program))
    return out;
  for (const CallRef& call : program.calls_named("save_checkpoint"))
    if (call.receiver() && facts::contains(call.receiver().text(), "trainer")) out.push_back(call);
  return out;
}

}  // namespace bench::pitfalls
