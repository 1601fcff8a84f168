#include "scenarios/pitfalls/wrappers/never_wrapped.hpp"

#include "scenarios/pitfalls/data/loaders.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/handed_out.hpp"
#include "scenarios/pitfalls/wrappers/frozen.hpp"

#include <algorithm>
#include <cctype>
#include <initializer_list>
#include <string>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::TrainingLoop;
using diagnose::Wrapper;

namespace {

bool names_one_of(std::string_view text, std::initializer_list<std::string_view> words) {
  const std::string plain = facts::lowered(text);
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return facts::contains(plain, word); });
}

// from apex import amp, which reduces nothing, in a file that uses no more of it: an import of
// apex.parallel is left over where its names are gone.
bool is_for_precision(const diagnose::Module& module, std::string_view path) {
  if (path != "apex" && !path.starts_with("apex.parallel")) return false;
  return std::none_of(module.calls().begin(), module.calls().end(), [&](const auto& call) {
    const std::string_view called = call.path;
    return called.starts_with("apex.") && !called.starts_with("apex.amp.");
  });
}

// The gradients, or the weights, may be averaged by hand or by what another package brings.
bool may_reduce_gradients(const Program& program) {
  for (const Api api :
       {Api::ddp, Api::apex_ddp, Api::fsdp, Api::all_reduce, Api::all_gather, Api::reduce,
        Api::reduce_scatter, Api::gather, Api::all_to_all, Api::send, Api::broadcast,
        Api::differentiable_gather, Api::deepspeed, Api::hvd_init, Api::accelerator})
    if (program.uses(api)) return true;
  for (const diagnose::Module* module : program.modules()) {
    for (const std::string& path : module->imports())
      if (path != "apex.amp" && !is_for_precision(*module, path) &&
          names_one_of(path, {"fsdp", "deepspeed", "horovod", "apex", "fairscale", "colossal",
                              "megatron", "xla", "bagua", "byteps", "ignite", "mmcv", "mmengine",
                              "lightning", "accelerate"}))
        return true;
    for (const diagnose::Call& call : module->calls())
      if (names_one_of(call.name,
                       {"reduce", "average_grad", "avg_grad", "sync_grad", "gradient", "hook",
                        "wrap", "shard(", "fully_shard", "replicate", "parallelize", "distribute_m",
                        "broadcast", "average", "sync_", "irecv", "isend"}) ||
          (names_one_of(call.name, {"parallel", "ddp"}) && call.api != Api::data_parallel))
        return true;
    // wrap = DDP if distributed else DataParallel, partial(DDP, ...)
    const auto& tree = module->tree();
    for (diagnose::NodeId id = 0; id < tree[0].last; ++id)
      if (tree[id].kind == diagnose::Kind::identifier &&
          names_one_of(tree.text(id), {"ddp", "distributeddataparallel"}) &&
          tree.ancestor(id, diagnose::Kind::import_from) == diagnose::kNoNode)
        return true;
  }
  return false;
}

// A class, or a library of models, makes it: Net(), resnet50().
bool makes_plain_model(const Program& program, const CallRef& made) {
  if (program.derives_from(program.class_of_call(made), Api::module_class)) return true;
  if (made.call->api == Api::torchvision_model) return true;
  const std::string_view name = made.call->name;
  if (name.size() > 2 && std::isupper(static_cast<unsigned char>(name[0])) != 0 &&
      !program.class_of_call(made) &&
      !program.comes_from_rank(made.ref().child(diagnose::Field::arguments)) &&
      std::any_of(name.begin(), name.end(), [](unsigned char c) { return std::islower(c) != 0; }))
    return !names_one_of(name, {"wrap", "parallel", "distrib", "engine", "trainer", "learner",
                                "agent", "system", "solver", "loss"});
  const std::string_view path = made.call->path;
  for (const std::string_view library : {"torchvision.", "timm.", "transformers.", "torch.nn."})
    if (path.starts_with(library)) return true;
  return false;
}

// The ranks' own DataParallel over their one GPU moves nothing between them. Over all GPUs it does.
bool is_for_own_gpu(const Program& program, const diagnose::Wrap& wrap) {
  const Ref ids = program.written(wrap.call.argument(1, "device_ids"));
  return wrap.kind == Wrapper::data_parallel && ids.kind() == diagnose::Kind::list &&
         ids.module->tree().child_at(ids.node, 1) == diagnose::kNoNode &&
         program.comes_from_rank(ids);
}

bool is_plain_model(const Program& program, Ref model, int depth = 0) {
  constexpr int kSteps = 3;
  const auto& sources = program.module_sources(model);
  return !sources.empty() && std::all_of(sources.begin(), sources.end(), [&](const auto& source) {
    const CallRef made = program.as_call(source.ref);
    // model, optimizer = amp.initialize(model, optimizer)
    if (made && made.call->name == "initialize" && source.element == 0 && depth < kSteps &&
        made.call->path == "apex.amp.initialize")
      return is_plain_model(program, made.positional(0), depth + 1);
    if (!made || source.how != diagnose::Source::How::value) return false;
    if (const diagnose::Wrap* wrap = program.wrap_made_by(source.ref))
      return is_for_own_gpu(program, *wrap);
    return makes_plain_model(program, made);
  });
}

// sync(model), comm.mean_(p.grad), Optimizer(SGD(...)): functions out of sight may reduce. Those
// that by their names load, save, test or measure do not.
bool may_reduce_out_of_sight(const Program& program, std::string_view model) {
  const std::string parameters = std::string(model) + ".";
  const auto calls = calls_given(program, [&](Ref value) {
    const std::string_view text = value.text();
    return text == model || facts::contains(text, ".grad") ||
           (text.starts_with(parameters) && facts::contains(text, "parameters")) ||
           program.comes_from(value, Api::optimizer);
  });
  return std::any_of(calls.begin(), calls.end(), [](const CallRef& call) {
    const bool stays = names_one_of(call.call->name,
                                    {"eval", "test", "valid", "load", "save", "init", "count",
                                     "log", "sched", "warmup", "accuracy", "clip", "freeze",
                                     "flops", "summary", "initialize", "scale_loss", "unscale"}) ||
                       call.call->name == "step";
    return !stays;
  });
}

// A step of an optimizer follows: gradients of the inputs alone, as of an attack, are nobody's
// business but the rank's.
bool steps(const Program& program, const TrainingLoop& loop) {
  return program.subtree_calls(loop.batches,
                               [](const CallRef& call) { return call.call->name == "step"; });
}

// num_replicas=1, written out, deals nothing; the default of an option does not say that much.
bool deals_to_several(const Program& program, const CallRef& sampler) {
  const Ref replicas = program.written(sampler.argument(1, "num_replicas"));
  return replicas.kind() != diagnose::Kind::integer || program.integer(replicas).value_or(2) > 1;
}

// A sampler for the training samples shows that ranks are meant to share them, whether or not the
// loader was given it.
bool has_sampler_for_training(const Program& program) {
  const auto samplers = program.calls(Api::distributed_sampler);
  return std::any_of(samplers.begin(), samplers.end(), [&](const CallRef& sampler) {
    const Ref given = sampler.argument(0, "dataset");
    return names_one_of(given.text(), {"train", "tr_"}) && deals_to_several(program, sampler);
  });
}

bool is_dealt_out(const Program& program, const TrainingLoop& loop) {
  if (has_sampler_for_training(program)) return true;
  const auto loaders = loaders_of(program, loop.iterable);
  return !loaders.empty() && std::all_of(loaders.begin(), loaders.end(), [&](const auto& loader) {
    const CallRef sampler = sampler_of(program, loader);
    return sampler && !is_evaluation_loader(program, loader) && deals_to_several(program, sampler);
  });
}

}  // namespace

std::vector<CallRef> unreduced_forwards(const Program& program) {
  std::vector<CallRef> out;
  const bool joins = program.uses(Api::init_process_group) ||
                     !program.calls_named("init_distributed_mode").empty();
  if (!joins || program.framework_distributes() || may_reduce_gradients(program)) return out;
  for (const TrainingLoop& loop : program.training_loops()) {
    if (!is_dealt_out(program, loop) || !steps(program, loop)) continue;
    for (const CallRef& backward : loop.backwards)
      for (const Ref& node : facts::calls_behind(program, facts::loss_of(backward))) {
        const CallRef call = program.as_call(node);
        const Ref model{call.module, call.call->function};
        if (!program.under_no_grad(node) && !program.comes_from(model, Api::loss) &&
            is_plain_model(program, model) && !program.is_evaluation(node) &&
            !is_frozen(program, model) && !is_left_to_no_optimizer(program, model) &&
            !may_reduce_out_of_sight(program, model.text()) &&
            std::none_of(out.begin(), out.end(),
                         [&](const auto& each) { return each.ref() == node; }))
          out.push_back(call);
      }
  }
  return out;
}

}  // namespace bench::pitfalls
