#include "diagnose/to_ddp/parts.hpp"

#include "diagnose/to_ddp/entry.hpp"
#include "diagnose/to_ddp/gpu_flags.hpp"
#include "diagnose/to_ddp/idle_wraps.hpp"
#include "diagnose/to_ddp/launch_flags.hpp"
#include "diagnose/to_ddp/loader_choice.hpp"
#include "diagnose/to_ddp/loader_loops.hpp"
#include "diagnose/to_ddp/output_paths.hpp"
#include "diagnose/to_ddp/parameterless.hpp"
#include "diagnose/to_ddp/reached_code.hpp"
#include "diagnose/to_ddp/remaining/before_group.hpp"
#include "scenarios/pitfalls/data/loaders.hpp"
#include "scenarios/pitfalls/program/edits.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"
#include "scenarios/pitfalls/wrappers/frozen.hpp"

#include <algorithm>
#include <iterator>
#include <set>

namespace bench::diagnose {
namespace {

// A DataParallel of the program that does more than PyTorch's, or what only follows another
// wrapper.
bool is_of_own_kind(const Program& program, const Wrap& wrap) {
  return wrap.own && (!only_runs_callbacks(program, wrap.own) || wraps_again(program, wrap));
}

void find_wraps(const ReachedCode& reached, Parts& out) {
  const Program& program = reached.program();
  for (const Wrap& wrap : program.wraps()) {
    if (wrap.kind != Wrapper::data_parallel || !wrap.module || is_of_own_kind(program, wrap) ||
        !reached.comes_by(wrap.call.ref()))
      continue;
    const bool is_maybe_frozen = !wraps_no_parameters(program, wrap) &&
                                 stands_for_object(wrap.module) &&
                                 pitfalls::is_frozen_in_some_runs(program, wrap.module);
    const bool is_empty = !is_maybe_frozen && (wraps_no_parameters(program, wrap) ||
                                               pitfalls::is_frozen(program, wrap.module));
    (is_empty ? out.empty_wraps : out.wraps).push_back(&wrap);
    if (is_maybe_frozen) out.maybe_frozen.push_back(&wrap);
  }
  // Where all were idle, what trains has not been seen.
  std::vector<const Wrap*> idle;
  std::copy_if(out.wraps.begin(), out.wraps.end(), std::back_inserter(idle),
               [&](const Wrap* wrap) { return wraps_nothing_trained(program, *wrap); });
  if (idle.size() == out.wraps.size()) return;
  out.idle_wraps = idle;
  std::erase_if(out.wraps, [&](const Wrap* wrap) {
    return std::find(idle.begin(), idle.end(), wrap) != idle.end();
  });
}

// cv_loader: for cross-validation.
bool is_for_cross_validation(const Program& program, const CallRef& loader) {
  for (const std::string& word : pitfalls::words_of_name(program.assigned_name(loader.ref())))
    if (word == "cv" || word == "holdout") return true;
  return false;
}

// A sampler of its own, an evaluation and an IterableDataset need more than a line.
bool is_to_be_shared_out(const Program& program, const CallRef& loader) {
  const Ref dataset = loader.argument(0, "dataset");
  return dataset && loader.call->api == Api::data_loader &&
         !pitfalls::has_some_sampler(program, loader) &&
         !pitfalls::is_evaluation_loader(program, loader) &&
         !is_for_cross_validation(program, loader) &&
         !program.derives_from(program.class_of(dataset), Api::iterable_dataset);
}

// make_loader(train_set) and make_loader(val_set): what is given to one is given to the other,
// unless the function tells them apart.
bool is_asked_for_training(const Program& program, const CallRef& loader) {
  return is_in_branch_for_training(program, loader) || choice_of_training(program, loader);
}

bool serves_training_alone(const Program& program, const CallRef& loader) {
  return !serves_several(program, loader) || is_named_for_training(program, loader) ||
         is_asked_for_training(program, loader);
}

void find_loaders(const ReachedCode& reached, Parts& out) {
  const Program& program = reached.program();
  const auto add = [&](const CallRef& loader) {
    const auto same = [&](const CallRef& each) { return each.ref() == loader.ref(); };
    if (is_to_be_shared_out(program, loader) && serves_training_alone(program, loader) &&
        std::none_of(out.loaders.begin(), out.loaders.end(), same))
      out.loaders.push_back(loader);
  };
  const std::set<Ref> drawn = drawn_without_training(program);
  bool is_followed = false;
  for (const CallRef& loader : program.calls(Api::data_loader))
    if (loader.module == &program.root() && !drawn.contains(loader.ref())) add(loader);
  for (const TrainingLoop& loop : program.training_loops()) {
    if (!reached.comes_by(loop.batches) || !loop.iterable) continue;
    auto loaders = pitfalls::loaders_of(program, loop.iterable);
    if (loaders.empty()) loaders = loaders_within(program, program.strip_iterable(loop.iterable));
    for (const CallRef& loader : loaders) {
      is_followed = true;
      add(loader);
      for (const CallRef& other : loaders_in_place_of(program, loader)) add(other);
    }
  }
  if (is_followed) return;
  const std::set<Ref> evaluated = drawn_without_gradients(program);
  for (const CallRef& loader : program.calls(Api::data_loader))
    if (reached.comes_by(loader.ref()) &&
        (is_asked_for_training(program, loader) ||
         (is_named_for_training(program, loader) && !evaluated.contains(loader.ref()))))
      add(loader);
}

void find_devices(const ReachedCode& reached, Parts& out) {
  const Program& program = reached.program();
  for (const Module* module : program.modules())
    for (const FixedDevice& device : fixed_devices(program, *module))
      if (reached.comes_by(device.where)) out.devices.push_back(device);
}

void find_saves(const Program& program, Parts& out) {
  for (const CallRef& save : program.calls(Api::torch_save)) {
    const Ref path = save.argument(1, "f");
    if (save.module == &program.root() && program.guarded_by_rank(save.ref()) == RankTest::none &&
        !(path && is_private(program, path)))
      out.saves.push_back(save);
  }
}

bool is_data_parallel(const Program& program, Ref type) {
  const std::string path = program.qualified(type);
  return path.starts_with("torch.nn.") && path.ends_with(".DataParallel");
}

// if isinstance(module, DataParallel): DataParallelWithCallback(...), which is for that alone.
bool is_asked_to_wrap_again(const Program& program, Ref test) {
  const auto& wraps = program.wraps();
  return std::any_of(wraps.begin(), wraps.end(), [&](const Wrap& wrap) {
    return wrap.own && only_runs_callbacks(program, wrap.own) && wraps_again(program, wrap) &&
           program.enclosing_function(wrap.call.ref()) == program.enclosing_function(test);
  });
}

void find_type_tests(const ReachedCode& reached, Parts& out) {
  const Program& program = reached.program();
  for (const CallRef& test : program.calls_named("isinstance")) {
    const Ref type = test.positional(1);
    // An assertion asks for what DataParallel alone can do.
    if (type && type.kind() != Kind::tuple && is_data_parallel(program, type) &&
        pitfalls::statement_of(type).kind() != Kind::assert_statement &&
        reached.comes_by(test.ref()) && !is_asked_to_wrap_again(program, test.ref()))
      out.type_tests.push_back(type);
  }
}

// len(args.device) > 1, type(args.device) is list
bool asks_for_several_devices(std::string_view condition) {
  return pitfalls::says_any(condition, {"device"}) &&
         (condition.starts_with("len(") ||
          (pitfalls::says_any(condition, {"list"}) &&
           (condition.starts_with("type(") || condition.starts_with("isinstance("))));
}

// A test of the model's type asks for no GPUs.
bool asks_for_gpus(std::string_view condition) {
  if (asks_for_several_devices(condition)) return true;
  return condition.find("isinstance") == std::string_view::npos &&
         condition.find(":=") == std::string_view::npos &&
         pitfalls::says_any(condition, {"gpu", "parallel", "device_ids", "distributed"});
}

// torch.cuda.device_count() > 1, also by a name: as true for each process as it was for one.
bool counts_devices(const Program& program, Ref condition) {
  const auto counts = [](std::string_view text) {
    return text.find("device_count") != std::string_view::npos;
  };
  if (counts(condition.text())) return true;
  const auto& tree = condition.module->tree();
  for (NodeId node = condition.node; node < tree.size() && tree.contains(condition.node, node);
       ++node) {
    const Ref part = condition.with(node);
    if (part.kind() != Kind::identifier && part.kind() != Kind::attribute) continue;
    for (const Source& source : program.sources(part))
      if (source.how == Source::How::value && counts(source.ref.text())) return true;
  }
  return false;
}

// use_gpu, args.cuda: whether there is a GPU at all, as True or torch.cuda.is_available() say. That
// is as true for each process as it was for one, and what it wrapped it has wrapped on one GPU too.
bool asks_for_any_gpu(const Program& program, Ref condition) {
  if (condition.kind() != Kind::identifier && condition.kind() != Kind::attribute) return false;
  const std::string_view text = condition.text();
  const auto words = pitfalls::words_of_name(text.substr(text.rfind('.') + 1));
  const auto has = [&](std::string_view word) {
    return std::find(words.begin(), words.end(), word) != words.end();
  };
  if (!has("gpu") && !has("cuda")) return false;
  const auto says_so = [&](const Source& source) {
    if (source.how == Source::How::argument) {
      const Ref usual = program.as_call(source.ref).keyword("default");
      return usual && program.is_literal_true(usual);
    }
    return source.how == Source::How::value && (program.is_literal_true(source.ref) ||
                                                source.ref.text() == "torch.cuda.is_available()");
  };
  const auto& sources = program.sources(condition);
  return !sources.empty() && std::all_of(sources.begin(), sources.end(), says_so);
}

void add_condition(const Program& program, const Guard& guard, Parts& out);

// The script joins its group above what the flag is given, in every run that comes there.
bool is_given_in_group(const Program& program, Ref value, const Parts& parts) {
  std::vector<Ref> needs = {value};
  for (const Wrap* wrap : parts.wraps) needs.push_back(wrap->call.ref());
  for (const CallRef& loader : parts.loaders) needs.push_back(loader.ref());
  const Ref entry = ddp_entry(program, needs).first;
  return entry && (entry == commands_of_class(program) || is_surely_below(program, entry, value));
}

// self.is_parallel = args.num_gpu > 1: all that reads the flag has to follow the wrapper, so what
// it is given asks for the group. False where the condition is no such flag, is given something
// else than an answer about GPUs, or perhaps before there is a group.
bool add_flag(const Program& program, const Guard& guard, Parts& out) {
  const Ref value = value_of_flag(program, guard.condition);
  if (!value || !asks_for_gpus(value.text()) || counts_devices(program, value) ||
      !is_given_in_group(program, value, out))
    return false;
  add_condition(program, {value, guard.holds}, out);
  return true;
}

// Of `resume and len(gpus) > 1` the part that asks for GPUs.
void add_condition(const Program& program, const Guard& guard, Parts& out) {
  const Ref condition = guard.condition;
  const auto& tree = condition.module->tree();
  if (condition.kind() == Kind::boolean &&
      (tree[condition.node].op == Op::logical_and) == guard.holds) {
    add_condition(program, {condition.child(Field::left), guard.holds}, out);
    add_condition(program, {condition.child(Field::right), guard.holds}, out);
    return;
  }
  if (condition.kind() == Kind::not_expression &&
      value_of_flag(program, condition.child(Field::argument))) {
    add_condition(program, {condition.child(Field::argument), !guard.holds}, out);
    return;
  }
  if (add_flag(program, guard, out)) return;
  if (!asks_for_gpus(condition.text()) || counts_devices(program, condition)) return;
  if (const std::string flag = launch_flag_of(program, condition); !flag.empty()) {
    if (guard.holds) add_once(out.launch_flags, flag);
    return;
  }
  if (guard.holds && asks_for_any_gpu(program, condition)) return;
  const auto same = [&](const GpuCondition& each) { return each.condition == condition; };
  if (std::none_of(out.conditions.begin(), out.conditions.end(), same))
    out.conditions.push_back({condition, guard.holds});
}

// Around the node, and around the calls that lead to it: if args.multi_gpu: net.wrap().
void add_conditions(const ReachedCode& reached, Ref node, int calls, Parts& out) {
  const Program& program = reached.program();
  for (const Guard& guard : program.guards(node)) add_condition(program, guard, out);
  const FunctionRef function = program.enclosing_function(node);
  if (!function || calls == 0) return;
  for (const CallRef& site : program.call_sites(function))
    if (reached.comes_by(site.ref())) add_conditions(reached, site.ref(), calls - 1, out);
}

void find_conditions(const ReachedCode& reached, Parts& out) {
  constexpr int kCalls = 2;                                // main() -> prepare() -> the wrapper
  for (const auto* wraps : {&out.wraps, &out.idle_wraps})  // what one saves the other loads
    for (const Wrap* wrap : *wraps) add_conditions(reached, wrap->call.ref(), kCalls, out);
}

// In the branch that no rank takes, once the condition asks for the group.
bool is_without_ranks(const Program& program, Ref node, const Parts& parts) {
  const auto guards = program.guards(node);
  return std::any_of(guards.begin(), guards.end(), [&](const Guard& guard) {
    return std::any_of(parts.conditions.begin(), parts.conditions.end(),
                       [&](const GpuCondition& each) {
                         const Ref value = value_of_flag(program, guard.condition);
                         return (each.condition == guard.condition || each.condition == value) &&
                                each.holds != guard.holds;
                       });
  });
}

void find_launch_flags(const ReachedCode& reached, Parts& out) {
  for (const std::string& flag : flags_of_gpu(reached)) add_once(out.launch_flags, flag);
}

bool speaks_of_rank(const Program& program, Ref setting) {
  const std::string text = pitfalls::text_behind(program, setting.child(Field::right));
  return pitfalls::says_any(text, {"rank"});
}

// Also where an option decides whether it is made: a rank must not come by in any case.
void find_gpu_choices(const ReachedCode& reached, Parts& out) {
  const Program& program = reached.program();
  const auto settings = pitfalls::facts::settings_of(program, "CUDA_VISIBLE_DEVICES");
  if (settings.empty()) return;
  for (const Ref setting : settings)
    if ((reached.comes_by(setting) || reached.has(setting)) &&  // Config.from_args(...) of a class
        !speaks_of_rank(program, setting) && !hides_all_gpus(program, setting) &&
        program.guarded_by_rank(setting) == RankTest::none &&
        !is_without_ranks(program, setting, out))
      out.gpu_choices.push_back(setting);
}

}  // namespace

Parts parts_of(const ReachedCode& reached) {
  const Program& program = reached.program();
  Parts out;
  find_wraps(reached, out);
  if (out.wraps.empty()) return out;
  find_loaders(reached, out);
  find_devices(reached, out);
  find_saves(program, out);
  find_type_tests(reached, out);
  find_conditions(reached, out);
  find_gpu_choices(reached, out);
  find_launch_flags(reached, out);
  out.old_sync = old_sync_of(reached);
  return out;
}

}  // namespace bench::diagnose
