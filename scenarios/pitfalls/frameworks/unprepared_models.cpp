#include "scenarios/pitfalls/frameworks/unprepared_models.hpp"

#include "diagnose/model/made_at.hpp"
#include "scenarios/pitfalls/frameworks/prepared.hpp"
#include "scenarios/pitfalls/program/argument_for.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/variables.hpp"
#include "scenarios/pitfalls/wrappers/frozen.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Source;

namespace {

// Pipeline(unet, encoder): what it gives is prepared, and the model is part of it.
bool holds_model(const Program& program, Ref prepared, std::string_view model) {
  const auto behind = facts::calls_behind(program, prepared);
  return std::any_of(behind.begin(), behind.end(), [&](const Ref& node) {
    const auto given = facts::arguments_of(program.as_call(node));
    return std::any_of(given.begin(), given.end(), [&](Ref each) { return each.text() == model; });
  });
}

// self.model = net: both are names of one model.
bool is_other_name(const Program& program, Ref prepared, std::string_view model) {
  const auto names = program.names_behind(prepared);
  return std::any_of(names.begin(), names.end(), [&](Ref name) { return name.text() == model; });
}

// The model is passed to some prepare(), by its name, as part of something, or out of sight.
bool is_prepared_somewhere(const Program& program, std::string_view model) {
  const auto prepares = program.calls_named("prepare");
  return std::any_of(prepares.begin(), prepares.end(), [&](const CallRef& prepare) {
    if (prepare.has_splat()) return true;
    for (std::size_t i = 0; const Ref argument = prepared_by(prepare, i); ++i)
      if (!is_variable(argument) || argument.text() == model ||
          holds_model(program, argument, model) || is_other_name(program, argument, model))
        return true;
    return false;
  });
}

// AdamW(model.parameters()), AdamW([*unet.parameters(), *encoder.parameters()]): the models, by the
// names that they have where prepare() is called.
std::vector<Ref> models_of(const Program& program, const CallRef& optimizer,
                           const CallRef& prepare) {
  std::vector<Ref> out;
  const Ref given = optimizer.argument(0, "params");
  const CallRef made = diagnose::made_at(program, optimizer);
  const auto here = program.enclosing_function(prepare.ref());
  if (!given || made.module != prepare.module || program.enclosing_function(made.ref()) != here)
    return out;
  for (const Ref& node : facts::calls_behind(program, given)) {
    const CallRef parameters = program.as_call(node);
    if (parameters.call->name != "parameters" || !is_variable(parameters.receiver())) continue;
    if (const Ref model = diagnose::seen_in(program, parameters.receiver(), here))
      out.push_back(model);
  }
  return out;
}

// Of PyTorch, or of another library: Lion(model.parameters()).
bool takes_parameters(const Program& program, const CallRef& optimizer) {
  if (optimizer.call->api == diagnose::Api::optimizer) return true;
  const CallRef given = program.made_by(optimizer.positional(0));
  return given && given.call->name == "parameters";
}

// A model of a prepared optimizer that is prepared nowhere.
Ref unprepared_model(const Program& program, const CallRef& prepare) {
  for (std::size_t i = 0; const Ref argument = prepared_by(prepare, i); ++i)
    for (const Source& source : program.sources(argument)) {
      const CallRef optimizer = program.as_call(source.ref);
      if (!optimizer || !takes_parameters(program, optimizer)) continue;
      for (const Ref model : models_of(program, optimizer, prepare))
        if (!is_prepared_somewhere(program, model.text()) && !is_frozen(program, model))
          return model;
    }
  return {};
}

}  // namespace

void check_unprepared_model(const Program& program, Report& report) {
  if (program.training_loops().empty()) return;
  for (const CallRef& prepare : program.calls_named("prepare")) {
    if (!is_of_accelerator(program, prepare)) continue;
    const Ref model = unprepared_model(program, prepare);
    if (!model) continue;
    report
        .at(prepare.ref(), Confidence::likely,
            "the optimizer is passed to accelerator.prepare() and its model is not: gradients are "
            "not reduced, and every process trains a model of its own")
        .help = "Pass the model to prepare() too, and use what it returns.";
  }
}

}  // namespace bench::pitfalls
