#include "scenarios/pitfalls/frameworks/early_moves.hpp"

#include "diagnose/model/made_at.hpp"
#include "scenarios/pitfalls/frameworks/prepared.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/ranks/device_binding.hpp"
#include "scenarios/pitfalls/ranks/own_gpu.hpp"
#include "scenarios/pitfalls/ranks/own_ranks.hpp"
#include "scenarios/pitfalls/reach/order.hpp"
#include "scenarios/pitfalls/reach/unconditional.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Kind;

namespace {

// The same name means the same there: in one function, in methods for self.model, or where what
// another function returns comes by.
bool is_same_place(const Program& program, Ref argument, Ref moved) {
  if (program.enclosing_class(argument) != program.enclosing_class(moved)) return false;
  if (argument.kind() != Kind::identifier ||
      program.enclosing_function(argument) == program.enclosing_function(moved))
    return true;
  const auto& sources = program.module_sources(argument);
  return std::any_of(sources.begin(), sources.end(), [&](const diagnose::Source& source) {
    return source.ref.module == moved.module &&
           (source.ref == moved || source.ref.module->tree().contains(source.ref.node, moved.node));
  });
}

// model.to(device), or model = Net().to(device).
Ref moved_variable(const CallRef& placement) {
  const Ref object = placement.receiver();
  if (!object || object.kind() == Kind::identifier) return object;
  const auto& tree = placement.module->tree();
  const diagnose::NodeId parent = tree[placement.call->node].parent;
  if (object.kind() != Kind::call || tree[parent].kind != Kind::assignment) return {};
  const Ref target = placement.ref().with(tree.child(parent, diagnose::Field::left));
  return target.kind() == Kind::identifier ? target : Ref{};
}

// net of net.to("cuda"); return net, for the model that build() gives.
bool is_made_of(const Program& program, Ref model, const CallRef& placement) {
  const Ref moved = moved_variable(placement);
  if (!moved || !model) return false;
  const auto names = program.names_behind(model);
  return std::any_of(names.begin(), names.end(),
                     [&](Ref name) { return program.same_variable(name, moved); });
}

// The line, or the only call that leads to it, stands in the function that makes what sets the
// device, above it.
bool is_above(const Program& program, Ref placement, const CallRef& made) {
  const auto places = diagnose::places_of(program, placement);
  return std::any_of(places.begin(), places.end(), [&](Ref place) {
    return program.enclosing_function(place) == program.enclosing_function(made.ref()) &&
           only_runs_before(program, place, made.ref());
  });
}

// accelerator.prepare(model, optimizer) of the same variable, or of what self.model = Net().to(gpu)
// names.
bool is_prepared_later(const Program& program, const CallRef& placement) {
  const Ref object = placement.receiver();
  const std::string_view name = program.assigned_name(placement.ref());
  const auto calls = program.calls_named("prepare");
  return std::any_of(calls.begin(), calls.end(), [&](const CallRef& prepare) {
    if (!is_of_accelerator(program, prepare)) return false;
    for (std::size_t i = 0; const Ref argument = prepared_by(prepare, i); ++i)
      if (is_made_of(program, argument, placement) ||
          (argument.module == object.module &&
           (program.same_variable(argument, object) || (!name.empty() && argument.text() == name &&
                                                        is_same_place(program, argument, object)))))
        return true;
    return false;
  });
}

// No trial of the laboratory makes this form of DDP025's mistake.
void tell_early_move(Report& report, const CallRef& placement, std::string message,
                     std::string help) {
  Finding& finding =
      in_no_trial(report.at(placement.ref(), Confidence::likely, std::move(message)));
  finding.severity = Severity::warning;
  finding.help = std::move(help);
}

// model.to("cuda:0") of a model that accelerator.prepare() moves to the process's own GPU below.
bool tells_fixed_device(const Program& program, Report& report) {
  if (program.calls(Api::accelerator).empty() || !visible_devices(program).empty() ||
      !has_call_of_accelerator(program, "backward"))
    return false;
  for (const std::string_view name : {"cuda", "to"})
    for (const CallRef& placement : program.calls_named(name)) {
      const int index = placed_on(program, placement).value_or(-1);
      const Ref device = placement.argument(0, "device");
      const Kind written = program.written(device).kind();
      if (index < 0 ||
          (written != Kind::string && written != Kind::integer && written != Kind::call) ||
          !is_prepared_later(program, placement) || !is_unconditional(program, placement.ref()))
        continue;
      tell_early_move(
          report, placement,
          "every process puts the model on GPU " + std::to_string(index) +
              " first: accelerator.prepare() moves it to the process's own GPU only below",
          "Leave the device to accelerator.prepare().");
      return true;
    }
  return false;
}

// PartialState() sets the device of its process, as Accelerator() does; the line may stand below
// one.
bool may_be_below_state(const Program& program, const CallRef& placement) {
  for (const std::string_view name : {"PartialState", "AcceleratorState"})
    for (const CallRef& state : program.calls_named(name))
      if (!only_runs_before(program, placement.ref(), state.ref())) return true;
  return false;
}

// model.to("cuda") above Accelerator(), which is what gives a process its device.
void check_above_accelerator(const Program& program, Report& report) {
  const auto made = program.calls(Api::accelerator);
  if (made.empty() || binds_device(program) || !has_call_of_accelerator(program, "backward"))
    return;
  for (const std::string_view name : {"cuda", "to"})
    for (const CallRef& placement : program.calls_named(name)) {
      if ((placed_on(program, placement) != 0 && !is_on_current_gpu(program, placement)) ||
          !is_prepared_later(program, placement) || !is_unconditional(program, placement.ref()) ||
          may_be_below_state(program, placement))
        continue;
      if (!std::all_of(made.begin(), made.end(), [&](const CallRef& accelerator) {
            return is_above(program, placement.ref(), accelerator);
          }))
        continue;
      tell_early_move(report, placement,
                      "every process puts the model on GPU 0 first: Accelerator() "
                      "gives it a device of its own only below",
                      "Leave the device to accelerator.prepare(), or make the Accelerator first.");
      return;
    }
}

// Of the script's own guard, or of nothing else.
bool stands_under_a_test(const Program& program, const CallRef& placement) {
  const auto guards = program.guards(placement.ref());
  return std::any_of(guards.begin(), guards.end(), [](const diagnose::Guard& guard) {
    return !facts::contains(guard.condition.text(), "__name__");
  });
}

// model.to("cuda") above Trainer(strategy="ddp"): Lightning starts the script once for each rank,
// and its Trainer moves the model to the rank's GPU.
void check_above_trainer(const Program& program, Report& report) {
  if (program.calls(Api::lightning_trainer).empty() || binds_device(program)) return;
  const auto fits = program.calls_named("fit");
  for (const std::string_view name : {"cuda", "to"})
    for (const CallRef& placement : program.calls_named(name)) {
      const Ref model = moved_variable(placement);
      if (!model || !is_on_current_gpu(program, placement) ||
          stands_under_a_test(program, placement) ||
          std::none_of(fits.begin(), fits.end(), [&](const CallRef& fit) {
            const Ref given = fit.argument(0, "model");
            return given && given.module == model.module && program.same_variable(given, model) &&
                   only_runs_before(program, placement.ref(), fit.ref()) &&
                   fits_in_lightning_ranks(program, fit);
          }))
        continue;
      tell_early_move(report, placement,
                      "every rank puts the model on GPU 0 first: the Trainer moves it "
                      "to the rank's own GPU only below",
                      "Leave the device to the Trainer.");
      return;
    }
}

// What gives a process of Hugging Face's Trainer its device: the arguments, once they are made, and
// Accelerate's state.
std::vector<CallRef> arguments_made(const Program& program) {
  const auto made = program.calls(Api::hf_training_arguments);
  std::vector<CallRef> out(made.begin(), made.end());
  for (const std::string_view name :
       {"parse_args_into_dataclasses", "parse_dict", "parse_json_file", "parse_yaml_file"})
    for (const CallRef& call : program.calls_named(name)) out.push_back(call);
  for (const diagnose::Module* module : program.modules())
    for (const diagnose::Call& call : module->calls())
      if (call.name.ends_with("Arguments") &&
          program.derives_from(program.class_of_call({module, &call}), Api::hf_training_arguments))
        out.push_back({module, &call});
  return out;
}

// Trainer(model=model) below, of that variable, or of what load_model() has under that name.
bool is_handed_to_trainer(const Program& program, Ref model) {
  const auto trainers = program.calls(Api::hf_trainer);
  return std::any_of(trainers.begin(), trainers.end(), [&](const CallRef& trainer) {
    const Ref given = trainer.argument(0, "model");
    if (!given || program.same_variable(given, model)) return static_cast<bool>(given);
    const auto names = program.names_behind(given);
    return std::any_of(names.begin(), names.end(),
                       [&](Ref name) { return program.same_variable(name, model); });
  });
}

// model.cuda() above TrainingArguments(), which sets the device of its process.
void check_above_arguments(const Program& program, Report& report) {
  if (!has_trainer_ranks(program) || binds_device(program) || program.uses(Api::accelerator) ||
      program.uses(Api::init_process_group))
    return;
  const auto arguments = arguments_made(program);
  if (arguments.empty()) return;
  for (const std::string_view name : {"cuda", "to"})
    for (const CallRef& placement : program.calls_named(name)) {
      const Ref model = moved_variable(placement);
      if (!model ||
          (placed_on(program, placement) != 0 && !is_on_current_gpu(program, placement)) ||
          stands_under_a_test(program, placement) || !is_handed_to_trainer(program, model) ||
          may_be_below_state(program, placement) ||
          !std::all_of(arguments.begin(), arguments.end(), [&](const CallRef& made) {
            return is_above(program, placement.ref(), made);
          }))
        continue;
      tell_early_move(report, placement,
                      "every process puts the model on GPU 0 first: TrainingArguments "
                      "gives it a device of its own only below",
                      "Leave the device to the Trainer.");
      return;
    }
}

}  // namespace

void check_moves_above_device(const Program& program, Report& report) {
  if (!tells_fixed_device(program, report)) check_above_accelerator(program, report);
  check_above_trainer(program, report);
  check_above_arguments(program, report);
}

}  // namespace bench::pitfalls
