#include "scenarios/pitfalls/wrappers/late_layers.hpp"

#include "scenarios/pitfalls/metrics/metric_sums.hpp"
#include "scenarios/pitfalls/program/argument_for.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"

#include <algorithm>
#include <string>
#include <string_view>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::ClassRef;
using diagnose::Field;
using diagnose::Kind;
using diagnose::Wrap;

namespace {

// Each rank draws a mask of its own, where no seed is the same on all of them.
bool prunes_at_random(const CallRef& call) {
  return call.call->path.starts_with("torch.nn.utils.prune.random_");
}

// Functions that take the model, and methods of it.
Ref given_other_layers(const CallRef& call) {
  const std::string_view name = call.call->name;
  // PyTorch's convert_sync_batchnorm() keeps the parameters, Apex's function makes new ones.
  if (name == "convert_syncbn_model" || name == "get_peft_model" || prunes_at_random(call))
    return call.positional(0) ? call.positional(0) : call.keyword("module");
  if (name == "resize_token_embeddings" || name == "add_adapter") return call.receiver();
  return {};
}

bool is_seeded(const Program& program) {
  constexpr std::string_view kSeeds[] = {"manual_seed", "manual_seed_all", "seed_everything",
                                         "set_seed"};
  return std::any_of(std::begin(kSeeds), std::end(kSeeds), [&](std::string_view name) {
    const auto calls = program.calls_named(name);
    return std::any_of(calls.begin(), calls.end(), [&](const CallRef& call) {
      return !call.positional(0) || !program.comes_from_rank(call.positional(0));
    });
  });
}

// DDP(convert_sync_batchnorm(...)): what comes of the call is wrapped anew.
bool is_wrapped_anew(const Program& program, const CallRef& call) {
  const auto& wraps = program.wraps();
  return std::any_of(wraps.begin(), wraps.end(), [&](const Wrap& wrap) {
    return wrap.call.module == call.module &&
           call.module->tree().contains(wrap.call.call->node, call.call->node);
  });
}

// -1, (-1, -1) and in_channels=-1: the layer takes its width from the first batch.
bool waits_for_a_batch(const Program& program, const CallRef& call) {
  if (call.call->name.starts_with("Lazy")) return call.call->path.starts_with("torch.nn.");
  if (!call.call->path.starts_with("torch_geometric.nn")) return false;
  const Ref width = call.argument(0, "in_channels");
  return width && (width.text().starts_with("(-1") || program.integer(width) == -1);
}

// Nothing but these are known to leave the model as it is.
bool leaves_model_alone(const CallRef& call) {
  static constexpr std::string_view kNames[] = {"print", "to",   "cuda",       "parameters",
                                                "train", "eval", "isinstance", "type"};
  const std::string_view name = call.call->name;
  return call.call->api == Api::ddp || call.call->api == Api::optimizer ||
         std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames) ||
         says_any(name, {"convert", "optim", "adam", "sgd", "ddp", "criterion", "trainer"});
}

// net for net.to(device) and convert_sync_batchnorm(net).
Ref wrapped_name(const Program& program, const Wrap& wrap) {
  const CallRef call = program.as_call(wrap.module);
  if (!call) return wrap.module;
  if (call.call->api == Api::convert_sync_batch_norm) return call.positional(0);
  return call.receiver() ? call.receiver() : wrap.module;
}

// model(batch), model.load_state_dict(...), summary(model): the first of these makes parameters.
bool is_filled_above(const Program& program, const Wrap& wrap) {
  const Ref model = wrapped_name(program, wrap);
  const auto names = program.names_behind(wrap.module);
  for (const diagnose::Module* module : program.modules())
    for (const diagnose::Call& made : module->calls()) {
      const CallRef call{module, &made};
      if (leaves_model_alone(call)) continue;
      const auto is_model = [&](Ref object) {
        return object && (program.same_variable(object, model) || object.text() == model.text() ||
                          std::any_of(names.begin(), names.end(),
                                      [&](Ref name) { return name.text() == object.text(); }));
      };
      const auto given = facts::arguments_of(call);
      const bool takes_model = is_model({module, made.function}) || is_model(call.receiver()) ||
                               std::any_of(given.begin(), given.end(), is_model);
      if (takes_model && program.runs_before(call.ref(), wrap.call.ref())) return true;
    }
  return false;
}

// The name stands for the object that is wrapped, and for no other.
bool is_wrapped_object(const Program& program, const Wrap& wrap, Ref name) {
  const auto& ours = program.module_sources(wrap.module);
  const auto& theirs = program.module_sources(name);
  return ours.size() == 1 && theirs.size() == 1 && ours.front().ref == theirs.front().ref &&
         ours.front().how == theirs.front().how && ours.front().element == theirs.front().element;
}

// model(batch) above mp.spawn(worker, args=(model, ...)): the ranks get it with its parameters.
bool is_filled_before_ranks(const Program& program, const Wrap& wrap) {
  for (const CallRef& spawn : program.calls(diagnose::Api::spawn)) {
    const VariableNames given = variables_in(spawn.argument(1, "args"));
    const diagnose::Module& module = *spawn.module;
    const auto runs_one = [&](const diagnose::Call& made) {
      const Ref model{&module, made.function};
      return made.node < spawn.call->node && model.kind() == Kind::identifier &&
             given.contains(std::string(model.text())) && is_wrapped_object(program, wrap, model) &&
             program.enclosing_function({&module, made.node}) ==
                 program.enclosing_function(spawn.ref());
    };
    if (std::any_of(module.calls().begin(), module.calls().end(), runs_one)) return true;
  }
  return false;
}

}  // namespace

std::vector<LateLayers> calls_that_replace_layers(const Program& program) {
  std::vector<LateLayers> out;
  if (!program.has_ddp()) return out;
  for (const diagnose::Module* module : program.modules())
    for (const diagnose::Call& made : module->calls()) {
      const CallRef call{module, &made};
      const Ref model = given_other_layers(call);
      if (prunes_at_random(call) && is_seeded(program)) continue;
      if (model && !is_wrapped_anew(program, call)) out.push_back({call, model});
    }
  return out;
}

namespace {

// self(torch.zeros(1, 8)) and self.forward(...) in the class: it fills its layers itself.
bool fills_itself(const ClassRef& cls) {
  const auto calls = facts::calls_in({cls.module, cls.cls->body});
  return std::any_of(calls.begin(), calls.end(), [](const CallRef& call) {
    const std::string_view function = call.module->text(call.call->function);
    return function == "self" || function == "self.forward";
  });
}

// nn.Linear(width, 10) if width is not None else nn.LazyLinear(10)
bool is_one_of_two(const CallRef& layer) {
  return layer.module->tree().ancestor(layer.call->node, Kind::conditional) != diagnose::kNoNode;
}

}  // namespace

CallRef uninitialised_layer(const Program& program, const Wrap& wrap) {
  const auto classes = facts::wrapped_classes(program, wrap);
  for (const ClassRef& cls : classes)
    for (const CallRef& call : facts::calls_in({cls.module, cls.cls->body}))
      if (waits_for_a_batch(program, call)) {
        const bool is_filled = fills_itself(cls) || is_filled_above(program, wrap) ||
                               is_filled_before_ranks(program, wrap);
        return is_filled || is_one_of_two(call) ? CallRef{} : call;
      }
  return {};
}

}  // namespace bench::pitfalls
