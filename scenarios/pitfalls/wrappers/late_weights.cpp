#include "scenarios/pitfalls/wrappers/late_weights.hpp"

#include "scenarios/pitfalls/program/edits.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"
#include "scenarios/pitfalls/reach/unconditional.hpp"

#include <algorithm>
#include <string>
#include <string_view>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::FunctionRef;
using diagnose::RankTest;

namespace {

bool is_named_seeding(std::string_view name) {
  return name != "initial_seed" && says_any(name, {"seed", "determinis", "reproduc", "fix_random"});
}

// set_seed(42), torch.manual_seed(0): where no rank is part of it, all ranks draw the same.
bool draws_alike(const Program& program) {
  const auto seeds_all = [](const diagnose::Module& module, const diagnose::Call& made) {
    // torch.Generator().manual_seed(0) and np.random.seed(0) leave PyTorch's numbers alone.
    const bool is_of_others = (made.name == "manual_seed" && !made.path.starts_with("torch.")) ||
                              made.path.starts_with("numpy.") || made.path.starts_with("random.");
    return made.name != "initial_seed" && !is_of_others &&
           !facts::contains(module.text(made.node), "rank");
  };
  const auto& modules = program.modules();
  return std::any_of(modules.begin(), modules.end(), [&](const diagnose::Module* module) {
    const auto seeds = [&](std::uint32_t index) {
      return seeds_all(*module, module->calls()[index]);
    };
    const auto& named = module->calls_that(is_named_seeding);
    const auto& known = module->api_calls();  // under whatever names they are imported
    return std::any_of(named.begin(), named.end(), seeds) ||
           std::any_of(known.begin(), known.end(), [&](std::uint32_t index) {
             return module->calls()[index].api == Api::manual_seed && seeds(index);
           });
  });
}

// nothing but constants in the function of that name: no draw.
bool sets_constants(const Program& program, std::string_view name) {
  const auto& functions = program.functions();
  const auto is_named = [&](const FunctionRef& each) { return each.function->name == name; };
  const auto draws = [](const FunctionRef& each) {
    return says_any(each.module->text(each.function->body),
                    {"normal", "uniform", "xavier", "kaiming", "orthogonal", "sparse_", "rand",
                     "reset_param", "init_weight", "weight_init"});
  };
  return std::any_of(functions.begin(), functions.end(), is_named) &&
         std::none_of(functions.begin(), functions.end(),
                      [&](const FunctionRef& each) { return is_named(each) && draws(each); });
}

std::string_view last_part(std::string_view name) { return name.substr(name.rfind('.') + 1); }

// init_weights(model), weights_init_kaiming(model): a function that is given what it draws for.
bool names_a_draw(std::string_view function) {
  static constexpr std::string_view kNames[] = {
      "init_weights",       "init_weight",        "weights_init",          "weight_init",
      "initialize_weights", "initialise_weights", "initialize_parameters", "init_parameters",
      "init_params",        "reset_parameters",   "init_model_weights"};
  std::string name = facts::lowered(function);
  for (const std::string_view kind : {"_kaiming", "_xavier", "_normal", "_orthogonal"})
    if (name.ends_with(kind)) name.resize(name.size() - kind.size());
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

bool names_random_init(std::string_view name) {
  return says_any(name, {"normal", "uniform", "orthogonal", "sparse", "xavier", "kaiming"});
}

bool is_random_init(const CallRef& call) {
  return call.call->path.starts_with("torch.nn.init.") && names_random_init(call.call->name);
}

bool may_draw(std::string_view name) {
  return names_random_init(name) || may_initialise(name) || names_a_draw(name);
}

// What the call draws for; empty where it is no draw.
Ref drawn_by(const Program& program, const CallRef& call) {
  if (is_random_init(call)) return call.argument(0, "tensor");
  if (call.receiver() && initialises(call)) {
    const bool applies = call.call->name == "apply";
    // model.init_weights("resnet50.pth") reads a file.
    if (!applies && (call.positional(0) || call.keyword("pretrained"))) return {};
    const std::string_view what = applies ? last_part(call.positional(0).text()) : call.call->name;
    return sets_constants(program, what) ? Ref{} : call.receiver();
  }
  if (!call.receiver() && call.call->api == Api::none && !call.positional(1) &&
      names_a_draw(call.call->name))
    return sets_constants(program, call.call->name) ? Ref{} : call.positional(0);
  return {};
}

// if isinstance(net, DistributedDataParallel): ... dist.broadcast(weight, 0) sends that net alone.
bool is_for_a_wrapper(const Program& program, const CallRef& broadcast) {
  const auto guards = program.guards(broadcast.ref());
  return std::any_of(guards.begin(), guards.end(), [](const diagnose::Guard& guard) {
    return guard.holds && guard.condition.text().starts_with("isinstance(") &&
           facts::contains(guard.condition.text(), "DistributedDataParallel");
  });
}

// The one is in another wrapper than the other: a pretrained encoder beside a network that is
// drawn.
bool is_wrapped_elsewhere(const Program& program, Ref loaded, Ref drawn) {
  const diagnose::Wrap* first = program.wrap_of(loaded);
  const diagnose::Wrap* second = program.wrap_of(drawn);
  return first != nullptr && second != nullptr &&
         statement_of(first->call.ref()) != statement_of(second->call.ref()) &&
         program.assigned_name(first->call.ref()) != program.assigned_name(second->call.ref());
}

// model.load_state_dict(...) below, whatever the options are, makes up for it; so does what makes
// the ranks alike, and load_checkpoint(model, path) of a file out of sight.
bool is_restored_below(const Program& program, const CallRef& draw, Ref drawn) {
  const auto is_below = [&](const CallRef& call) {
    return is_unconditional(program, call.ref()) && program.runs_before(draw.ref(), call.ref());
  };
  const auto& broadcasts = program.calls(Api::broadcast);
  const FunctionRef helper = program.callee(draw);  // which may send what it draws itself
  const FunctionRef here = program.enclosing_function(draw.ref());
  if (std::any_of(broadcasts.begin(), broadcasts.end(), [&](const CallRef& call) {
        const FunctionRef sends = program.enclosing_function(call.ref());
        if (helper && sends == helper) return true;
        return program.runs_before(draw.ref(), call.ref()) &&
               (sends == here || !is_for_a_wrapper(program, call));
      }))
    return true;
  const std::string_view model = drawn.text().substr(0, drawn.text().find('.'));
  const diagnose::Module& file = *draw.module;
  return std::any_of(file.calls().begin(), file.calls().end(), [&](const diagnose::Call& made) {
    const CallRef call{&file, &made};
    if (made.name == "load_state_dict")
      return !is_wrapped_elsewhere(program, call.receiver(), drawn) && is_below(call);
    const std::string_view first = call.positional(0).text();
    return says_any(made.name, {"load", "restore", "resume", "broadcast", "sync_"}) &&
           first.substr(0, first.find('.')) == model && is_below(call);
  });
}

}  // namespace

bool may_initialise(std::string_view name) {
  return name == "apply" || name == "reset_parameters" ||
         (says_any(name, {"init"}) && says_any(name, {"weight"}));
}

bool initialises(const CallRef& call) {
  if (call.call->name == "apply")
    return call.positional(0) &&
           says_any(call.positional(0).text(), {"init", "xavier", "kaiming", "reset_param"});
  return may_initialise(call.call->name);
}

std::vector<LateDraw> draws_on_every_rank(const Program& program) {
  std::vector<LateDraw> out;
  if (!program.has_ddp() || draws_alike(program)) return out;
  for (const CallRef& call : program.calls_that(may_draw)) {
    const Ref drawn = drawn_by(program, call);
    if (drawn && program.guarded_by_rank(call.ref()) == RankTest::none &&
        facts::is_reachable(program, call.ref()) && !is_restored_below(program, call, drawn))
      out.push_back({call, drawn});
  }
  return out;
}

}  // namespace bench::pitfalls
