#include "scenarios/pitfalls/frameworks/engines.hpp"

#include "scenarios/pitfalls/program/argument_for.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Kind;
using diagnose::Source;

namespace {

// engine, of a function that is handed it from out of sight, or of a call into another file.
bool is_unknown(const Program& program, const Source& source) {
  const CallRef made = program.as_call(source.ref);
  return source.how == Source::How::parameter || source.how == Source::How::unknown ||
         (made && made.call->api == Api::none && !program.callee(made) &&
          !program.class_of_call(made));
}

// engine.backward(loss) is the engine's; accelerator, scaler, loss and optimizers have it as well.
bool has_method_of_engine(const Program& program, Ref object) {
  const std::string_view name = diagnose::last_word(object);
  if (!program.imports("deepspeed") || name.empty() ||
      !facts::contains(facts::lowered(name), "engine"))
    return false;
  const auto backwards = program.calls_named("backward");
  return std::any_of(backwards.begin(), backwards.end(), [&](const CallRef& backward) {
    return backward.positional(0) && backward.receiver() &&
           diagnose::last_word(backward.receiver()) == name;
  });
}

// fully_shard(self.net) and self.net, wherever it comes from.
bool is_sharded_by_name(const Program& program, Ref model) {
  const auto shards = program.calls(Api::fully_shard);
  return std::any_of(shards.begin(), shards.end(), [&](const CallRef& shard) {
    const Ref given = shard.argument(0, "module");
    return given.module == model.module && diagnose::stands_for_object(given) &&
           program.same_variable(given, model);
  });
}

// fully_shard(net) changes the object that it is given.
bool is_sharded_in_place(const Program& program, Ref model) {
  const auto shards = program.calls(Api::fully_shard);
  return is_sharded_by_name(program, model) ||
         std::any_of(shards.begin(), shards.end(), [&](const CallRef& shard) {
           const Ref given = shard.argument(0, "module");
           if (!given || !diagnose::stands_for_object(given)) return false;
           const auto& made = program.sources(given);
           const auto& sources = program.module_sources(model);
           return std::any_of(sources.begin(), sources.end(), [&](const Source& source) {
             return source.how == Source::How::value && source.ref.kind() == Kind::call &&
                    std::any_of(made.begin(), made.end(),
                                [&](const Source& each) { return each.ref == source.ref; });
           });
         });
}

// What DeepSpeed's own documentation asks of all ranks.
bool meets(std::string_view method) {
  static constexpr std::string_view kMethods[] = {
      "save_checkpoint", "load_checkpoint", "save_16bit_model",
      "save_fp16_model", "backward",        "step",
      "train_batch",     "eval_batch",      "allreduce_gradients"};
  return std::find(std::begin(kMethods), std::end(kMethods), method) != std::end(kMethods);
}

void add_meetings_of_deepspeed(const Program& program, std::vector<EngineMeeting>& out) {
  if (!program.imports("deepspeed")) return;
  for (const CallRef& made : program.calls(Api::deepspeed))
    out.push_back({made, "deepspeed.initialize"});
  for (const diagnose::Module* module : program.modules())
    for (const diagnose::Call& made : module->calls())
      if (const CallRef call{module, &made};
          meets(made.name) && is_engine(program, call.receiver()))
        out.push_back({call, std::string(made.name) + "() of DeepSpeed's engine"});
}

// save_checkpoint(model) of a file that is not there: the state of a sharded model is gathered.
bool is_given_away_to_save(const Program& program, const CallRef& call) {
  if (!says_any(call.call->name, {"save"}) || program.callee(call) || program.class_of_call(call))
    return false;
  // transformers' copies the file of the model's class.
  if (call.call->name == "custom_object_save") return false;
  const auto given = facts::arguments_of(call);
  return std::any_of(given.begin(), given.end(), [&](Ref each) {
    return diagnose::stands_for_object(each) && may_be_sharded(program, each);
  });
}

// torch.distributed.checkpoint.save({...}): each rank writes its shards, and all agree on a plan.
void add_checkpoints(const Program& program, std::vector<EngineMeeting>& out) {
  constexpr std::string_view kPackage = "torch.distributed.checkpoint.";
  for (const std::string_view name :
       {"save", "load", "save_state_dict", "load_state_dict", "async_save"})
    for (const CallRef& call : program.calls_named(name))
      if (!call.keyword("no_dist") && call.call->path.starts_with(kPackage))
        out.push_back({call, "torch.distributed.checkpoint." + std::string(name)});
}

void add_meetings_of_fsdp(const Program& program, std::vector<EngineMeeting>& out) {
  if (shards_nothing(program)) return;
  for (const CallRef& made : program.calls(Api::fsdp))
    out.push_back({made, "building FullyShardedDataParallel"});
  for (const diagnose::Module* module : program.modules())
    for (const diagnose::Call& made : module->calls()) {
      const CallRef call{module, &made};
      const Ref function{module, made.function};
      if (made.api != Api::none || made.function == diagnose::kNoNode) continue;
      if (is_given_away_to_save(program, call))
        out.push_back({call, std::string(made.name) +
                                 "(), which is to save a sharded model and gathers its shards,"});
      else if (made.name == "clip_grad_norm_" && is_sharded(program, call.receiver()))
        out.push_back({call, "clip_grad_norm_() of a sharded model"});
      else if (!made.path.starts_with("torch.") && diagnose::stands_for_object(function) &&
               is_sharded(program, function))
        out.push_back({call, "a forward pass of a sharded model, which gathers its parameters,"});
    }
}

}  // namespace

bool is_engine(const Program& program, Ref object) {
  if (!object || !diagnose::stands_for_object(object)) return false;
  const auto& sources = program.sources(object);
  const auto is_made = [&](const Source& source) {
    const CallRef made = program.as_call(source.ref);
    return made && made.call->api == Api::deepspeed && source.how == Source::How::element &&
           source.element == 0;
  };
  if (std::any_of(sources.begin(), sources.end(), is_made)) return true;
  return has_method_of_engine(program, object) &&
         std::all_of(sources.begin(), sources.end(),
                     [&](const Source& source) { return is_unknown(program, source); });
}

bool is_sharded(const Program& program, Ref model) {
  if (!model) return false;
  if (!program.may_be_given(model)) return is_sharded_by_name(program, model);
  const auto& sources = program.module_sources(model);
  const bool wrapped =
      !sources.empty() && std::all_of(sources.begin(), sources.end(), [&](const Source& source) {
        const CallRef made = program.as_call(source.ref);
        return made && source.how == Source::How::value && made.call->api == Api::fsdp;
      });
  return wrapped || (program.uses(Api::fully_shard) && is_sharded_in_place(program, model));
}

bool shards_nothing(const Program& program) {
  if (!program.uses(Api::fsdp) && !program.uses(Api::fully_shard)) return true;
  return program.mentions("NO_SHARD") && !program.mentions("FULL_SHARD");
}

bool may_be_sharded(const Program& program, Ref model) {
  if (!model || is_sharded(program, model)) return static_cast<bool>(model);
  // `if not config.fsdp:` and the other branch of `if config.fsdp:`
  if (program.under(model, [](Ref condition, bool holds) {
        const std::string text = facts::lowered(condition.text());
        return facts::contains(text, "fsdp") && holds == facts::contains(text, "not ");
      }))
    return false;
  const auto& sources = program.module_sources(model);
  return std::any_of(sources.begin(), sources.end(), [&](const Source& source) {
    const CallRef made = program.as_call(source.ref);
    return made && source.how == Source::How::value && made.call->api == Api::fsdp &&
           !facts::exclusive(made.ref(), model);
  });
}

std::vector<CallRef> engines_made(const Program& program) {
  std::vector<CallRef> out;
  for (const Api api : {Api::deepspeed, Api::fsdp, Api::fully_shard})
    out.insert(out.end(), program.calls(api).begin(), program.calls(api).end());
  return out;
}

Ref model_given(const CallRef& engine) {
  return engine.call->api == Api::deepspeed ? engine.argument(1, "model")
                                            : engine.argument(0, "module");
}

bool trains_by_engine(const Program& program) {
  for (const std::string_view package : {"pytorch_lightning", "lightning", "accelerate"})
    if (program.imports(package)) return false;
  const auto made = engines_made(program);
  return !program.framework_distributes() &&
         std::any_of(made.begin(), made.end(), [&](const CallRef& engine) {
           return !facts::is_switched_off(program, engine.ref()) &&
                  (engine.module == &program.root() ||  // taken as it is, whoever calls it
                   facts::is_reachable(program, engine.ref()));
         });
}

std::vector<EngineMeeting> meetings_of_engines(const Program& program) {
  std::vector<EngineMeeting> out;
  add_meetings_of_deepspeed(program, out);
  add_meetings_of_fsdp(program, out);
  add_checkpoints(program, out);
  return out;
}

}  // namespace bench::pitfalls
