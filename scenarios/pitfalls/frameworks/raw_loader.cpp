#include "scenarios/pitfalls/frameworks/raw_loader.hpp"

#include "diagnose/model/made_at.hpp"
#include "scenarios/pitfalls/data/loaders.hpp"
#include "scenarios/pitfalls/frameworks/prepared.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/variables.hpp"
#include "scenarios/pitfalls/reach/order.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Def;
using diagnose::DefKind;
using diagnose::Kind;
using diagnose::Source;

namespace {

// The assignment that takes what prepare() returns; empty where nothing does.
Ref taken_by(const CallRef& prepare) {
  const Ref node = prepare.ref();
  const Ref parent = node.with((*node.module)[node.node].parent);
  return parent.kind() == Kind::assignment ? parent : Ref{};
}

// accelerator.prepare(model, loader) as a statement: nothing takes what it returns.
bool is_dropped(const CallRef& prepare) {
  const auto& tree = prepare.module->tree();
  return tree[tree[prepare.call->node].parent].kind == Kind::expression_statement;
}

// Some line but the assignment gives the name a value.
bool has_value_beside(Ref name, Ref assignment) {
  const auto& module = *name.module;
  if (module.has_star_imports() || !module.import_path(name.text()).empty()) return true;
  const auto& defs = module.defs_of(name.text(), false);
  return std::any_of(defs.begin(), defs.end(), [&](std::uint32_t index) {
    return !module.tree().contains(assignment.node, module.defs()[index].target);
  });
}

// The assignment itself gives the name a value.
bool is_given_by(Ref name, Ref assignment) {
  const auto& module = *name.module;
  const auto& defs = module.defs_of(name.text(), false);
  return std::any_of(defs.begin(), defs.end(), [&](std::uint32_t index) {
    return module.tree().contains(assignment.node, module.defs()[index].target);
  });
}

bool is_same_value(const std::vector<Source>& some, const std::vector<Source>& others) {
  return std::any_of(some.begin(), some.end(), [&](const Source& mine) {
    return std::any_of(others.begin(), others.end(), [&](const Source& other) {
      return mine.ref == other.ref && mine.element == other.element;
    });
  });
}

// Some prepare() may be passed the loader: under that name, as that value, or out of sight.
bool may_be_prepared(const Program& program, Ref loader) {
  const auto& values = program.sources(loader);
  const auto names = program.names_behind(loader);
  for (const char* method : {"prepare", "prepare_data_loader"})
    for (const CallRef& prepare : program.calls_named(method)) {
      if (prepare.has_splat()) return true;
      for (std::size_t i = 0; const Ref argument = prepared_by(prepare, i); ++i)
        if (!is_variable(argument) || argument.text() == loader.text() ||
            std::find(names.begin(), names.end(), argument) != names.end() ||
            is_same_value(program.sources(argument), values))
          return true;
    }
  return false;
}

// model, train_batches = accelerator.prepare(model, train_batches), where the name has no value.
Ref passed_without_value(const CallRef& prepare) {
  const Ref assignment = taken_by(prepare);
  if (!assignment) return {};
  for (std::size_t i = 0; const Ref argument = prepared_by(prepare, i); ++i)
    if (argument.kind() == Kind::identifier && is_given_by(argument, assignment) &&
        !has_value_beside(argument, assignment) &&
        (argument.text().find("load") != std::string_view::npos ||
         argument.text().find("train") != std::string_view::npos))
      return argument;
  return {};
}

// EndlessSampler(data, rank=accelerator.process_index): of the program's own, and told the process.
bool is_told_the_process(const Program& program, Ref sampler) {
  const auto calls = facts::calls_behind(program, sampler);
  return std::any_of(calls.begin(), calls.end(), [](const Ref& call) {
    return facts::contains(call.text(), "process_index") || facts::contains(call.text(), "rank");
  });
}

// Every process has a part of its own by then.
bool has_sampler_of_ranks(const Program& program, Ref loader) {
  const auto loaders = loaders_of(program, loader);
  return std::any_of(loaders.begin(), loaders.end(), [&](const CallRef& made) {
    if (sampler_of(program, made)) return true;
    for (const std::string_view name : {"sampler", "batch_sampler"})
      if (const Ref sampler = made.keyword(name); sampler && is_told_the_process(program, sampler))
        return true;
    return false;
  });
}

// Where the line of the call begins, which may give a name what comes back.
diagnose::NodeId start_of(const CallRef& prepare) {
  return taken_by(prepare) ? taken_by(prepare).node : prepare.call->node;
}

// The call is passed the variable by its name.
bool is_passed(const CallRef& prepare, Ref name) {
  for (std::size_t i = 0; const Ref argument = prepared_by(prepare, i); ++i)
    if (argument.text() == name.text()) return true;
  return false;
}

// train() reads the variable of the file that prepare() is passed on the file's own level, and no
// line below gives it what came back.
bool is_read_of_file(const Program& program, const CallRef& prepare, Ref loader) {
  const auto& module = *loader.module;
  const auto reader = program.enclosing_function(loader);
  if (loader.kind() != Kind::identifier || !reader || prepare.module != loader.module ||
      program.enclosing_function(prepare.ref()))
    return false;
  for (const auto& parameter : reader.function->parameters)
    if (parameter.name == loader.text()) return false;
  if (program.mentions("global " + std::string(loader.text()))) return false;
  const auto line = start_of(prepare);
  const auto& defs = module.defs_of(loader.text(), false);
  return std::none_of(defs.begin(), defs.end(), [&](std::uint32_t index) {
    const auto target = module.defs()[index].target;
    const auto writer = module.function_of(target);
    return writer == reader.function->node || (writer == 0 && target >= line);
  });
}

// The prepare() above the loop in its function that is passed the name, which keeps its value.
bool leaves_as_it_was(const Program& program, const CallRef& prepare, Ref loader) {
  const bool after = only_runs_before(program, prepare.ref(), loader);
  const bool of_file = is_read_of_file(program, prepare, loader);
  if (!of_file && !shares_variable(program, loader, prepare.ref()))
    loader = diagnose::seen_in(program, loader, program.enclosing_function(prepare.ref()));
  if (!after || (!taken_by(prepare) && !is_dropped(prepare)) || !loader ||
      !runs_wherever(program, prepare.ref(), loader) || has_sampler_of_ranks(program, loader))
    return false;
  const Ref assignment = taken_by(prepare) ? taken_by(prepare) : prepare.ref();
  return is_passed(prepare, loader) &&
         (of_file || !may_change_between(program, loader, assignment, loader));
}

bool is_own(Ref at) {
  return at.kind() == Kind::attribute && at.child(diagnose::Field::object).text() == "self";
}

// prepare() or a line below it gives the name a value before it is kept: loader = prepared[2].
bool is_given_anew(const CallRef& prepare, Ref kept) {
  const auto& module = *kept.module;
  const auto from = start_of(prepare);
  const auto& defs = module.defs_of(kept.text(), false);
  return std::any_of(defs.begin(), defs.end(), [&](std::uint32_t index) {
    const auto target = module.defs()[index].target;
    return target >= from && target < kept.node &&
           module.function_of(target) == module.function_of(kept.node);
  });
}

// self.loader = loader in the function that passes `loader` to prepare(): the attribute, which gets
// no other value, keeps what it was.
bool is_kept_beside(const Program& program, const CallRef& prepare, Ref loader) {
  const auto values = is_own(loader) ? values_of(program, loader) : std::vector<const Def*>{};
  if (values.size() != 1 || values.front()->element >= 0 || loader.module != prepare.module ||
      !only_runs_before(program, prepare.ref(), loader) || has_sampler_of_ranks(program, loader))
    return false;
  const Ref kept = loader.with(values.front()->value);
  return kept.kind() == Kind::identifier && shares_variable(program, kept, prepare.ref()) &&
         is_passed(prepare, kept) && !is_given_anew(prepare, kept);
}

}  // namespace

RawLoader raw_loader_of(const Program& program, const diagnose::TrainingLoop& loop) {
  const Ref loader = program.strip_iterable(loop.iterable);
  if (!loader) return {};
  // The loader's own name here, and those that it has where it is made.
  std::vector<Ref> names = program.names_behind(loader);
  names.insert(names.begin(), loader);
  for (const CallRef& prepare : program.calls_named("prepare")) {
    if (!is_of_accelerator(program, prepare) || prepare.has_splat()) continue;
    if (is_kept_beside(program, prepare, loader)) return {prepare, {}};
    for (const Ref name : names)
      if (is_variable(name) && leaves_as_it_was(program, prepare, name)) return {prepare, {}};
    const Ref unknown = passed_without_value(prepare);
    if (unknown && !may_be_prepared(program, loader)) return {prepare, unknown};
  }
  return {};
}

}  // namespace bench::pitfalls
