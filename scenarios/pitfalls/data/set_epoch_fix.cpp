// The call of set_epoch that an epoch loop lacks. It has to hold in every run of the loop: those
// that make no sampler, and those that hand in a loader without one.
#include "scenarios/pitfalls/data/loaders.hpp"
#include "scenarios/pitfalls/program/argument_for.hpp"
#include "scenarios/pitfalls/program/edits.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/reach/order.hpp"
#include "scenarios/pitfalls/reach/unconditional.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Def;
using diagnose::Field;
using diagnose::Kind;
using diagnose::kNoNode;
using diagnose::NodeId;

namespace {

// sampler = DistributedSampler(train) ... sampler = DistributedSampler(test): below, the name is
// that of another object.
bool is_bound_anew(const CallRef& made, std::string_view name, Ref below) {
  const diagnose::Module& module = *made.module;
  const auto& definitions = module.defs_of(name, false);
  return std::any_of(definitions.begin(), definitions.end(), [&](std::uint32_t index) {
    const Def& other = module.defs()[index];
    return other.scope == module.scope_of(made.call->node) && other.target > made.call->node &&
           other.target < below.node &&
           !facts::exclusive(made.ref(), made.ref().with(other.target));
  });
}

// for epoch in range(n): train(model, train_loader): what the loop over the batches gets.
Ref given_to_batches(const Program& program, const diagnose::TrainingLoop& loop) {
  if (!loop.iterable || loop.iterable.kind() != Kind::identifier || !loop.function) return {};
  const auto& sites = program.call_sites(loop.function);
  if (sites.size() != 1 || program.innermost_loop(sites.front().ref()) != loop.epochs) return {};
  const Ref given = facts::argument_for(sites.front(), loop.function, loop.iterable.text());
  return diagnose::stands_for_object(given) ? given : Ref{};
}

// The epoch loop can say the name: it is of its own function, of the file, or an attribute of self.
bool is_visible(const Program& program, const diagnose::TrainingLoop& loop, const CallRef& made,
                std::string_view name) {
  if (name.empty() || made.module != loop.epochs.module || is_bound_anew(made, name, loop.epochs))
    return false;
  const auto here = program.enclosing_function(loop.epochs);
  const auto where = program.enclosing_function(made.ref());
  if (name.starts_with("self."))
    return here && where &&
           program.enclosing_class(loop.epochs) == program.enclosing_class(made.ref());
  return where == here || !where;
}

// Every run that comes to the loop has made the object.
bool is_made_in_all_runs(const Program& program, Ref made, Ref loop) {
  return is_unconditional(program, made) ||
         (program.enclosing_function(made) == program.enclosing_function(loop) &&
          runs_wherever(program, made, loop));
}

// What other runs have under the name.
struct Others {
  bool any = false;
  bool all_none = true;  // sampler = None
  bool in_all = false;   // one value before any test, or one in the other branch
};

Others others_of(const Program& program, const CallRef& made, std::string_view name) {
  Others out;
  const auto& module = *made.module;
  const bool is_attribute = name.starts_with("self.");
  const std::string_view last = is_attribute ? name.substr(name.rfind('.') + 1) : name;
  for (const std::uint32_t index : module.defs_of(last, is_attribute)) {
    const Def& def = module.defs()[index];
    const Ref target = made.ref().with(def.target);
    const Ref value = made.ref().with(def.value);
    if (target.text() != name) continue;
    if (is_attribute ? program.enclosing_class(target) != program.enclosing_class(made.ref())
                     : def.scope != module.scope_of(made.call->node))
      continue;
    if (def.value != kNoNode && module.tree().contains(def.value, made.call->node)) {
      // DistributedSampler(data) if several else None
      if (value.node == made.call->node || !is_unconditional(program, target)) continue;
      out.any = out.in_all = true;
      out.all_none = out.all_none && value.text().ends_with("None");
      continue;
    }
    if (def.kind == diagnose::DefKind::parameter || def.value == kNoNode) out.all_none = false;
    out.any = true;
    out.all_none = out.all_none && value.kind() == Kind::none_literal;
    out.in_all =
        out.in_all || is_unconditional(program, target) || facts::exclusive(made.ref(), target);
  }
  return out;
}

// The one test that the sampler is made under, where the loop can ask it as well.
std::string test_of(const Program& program, const CallRef& made, Ref loop) {
  const auto guards = program.guards(made.ref());
  if (guards.size() != 1 || !guards.front().holds) return {};
  const Ref test = guards.front().condition;
  if (test.kind() != Kind::identifier && test.kind() != Kind::attribute) return {};
  const bool same_function = program.enclosing_function(test) == program.enclosing_function(loop);
  const bool of_self = test.text().starts_with("self.") &&
                       program.enclosing_class(test) == program.enclosing_class(loop);
  return same_function || of_self ? std::string(test.text()) : std::string();
}

// The condition that the name of the sampler needs: "" where none does, nothing where no condition
// serves.
std::optional<std::string> condition_for_name(const Program& program, const CallRef& sampler,
                                              std::string_view name, Ref loop) {
  if (is_made_in_all_runs(program, sampler.ref(), loop)) return "";
  const Others others = others_of(program, sampler, name);
  if (others.any && others.in_all)
    return others.all_none ? std::string(name) + " is not None"
                           : "hasattr(" + std::string(name) + ", \"set_epoch\")";
  if (std::string test = test_of(program, sampler, loop); !test.empty()) return test;
  return std::nullopt;
}

// loader.sampler.set_epoch(epoch) holds without a test.
bool has_sampler_in_all_runs(const Program& program, const diagnose::TrainingLoop& loop,
                             const CallRef& loader, const CallRef& sampler, Ref name) {
  const auto known = name ? loaders_of(program, name) : std::vector<CallRef>{loader};
  return known.size() == 1 && !(name && facts::is_parameter(program, name)) &&
         is_made_in_all_runs(program, sampler.ref(), loop.epochs) &&
         is_made_in_all_runs(program, loader.ref(), loop.epochs);
}

// The loop over the batches begins with a new pass over the loader in every round: no iterator goes
// on from one round to the next.
bool restarts_with_round(const Program& program, const diagnose::TrainingLoop& loop) {
  if (loop.batches != loop.epochs && loop.iterable) {
    // batches = iter(loader), a statement of the round itself
    const std::string made = "= iter(" + std::string(loop.iterable.text()) + ")";
    const auto& tree = loop.epochs.module->tree();
    for (NodeId at = tree[loop.epochs.child(Field::body).node].first_child; at != kNoNode;
         at = tree[at].next_sibling)
      if (tree[at].kind == Kind::expression_statement || tree[at].kind == Kind::assignment)
        if (tree.text(at).ends_with(made)) return true;
  }
  return loop.batches.kind() == Kind::for_statement && loop.batches != loop.epochs &&
         program.strip_iterable(loop.batches.child(Field::right)) == loop.iterable;
}

// for loader in loaders, within the round: the name has no value at its top.
bool is_bound_in_round(const diagnose::TrainingLoop& loop, Ref name) {
  const auto& module = *name.module;
  const auto& known = module.defs_of(name.text(), false);
  return std::any_of(known.begin(), known.end(), [&](std::uint32_t index) {
    const Def& def = module.defs()[index];
    return def.kind == diagnose::DefKind::loop &&
           module.tree().contains(loop.epochs.node, def.target);
  });
}

struct Told {
  std::string object;
  std::string condition;
};

std::optional<Told> told_of(const Program& program, const diagnose::TrainingLoop& loop,
                            const CallRef& loader, const CallRef& sampler) {
  const std::string_view name = program.assigned_name(sampler.ref());
  if (is_visible(program, loop, sampler, name))
    if (const auto condition = condition_for_name(program, sampler, name, loop.epochs))
      return Told{std::string(name), *condition};
  Ref named;  // the loader, by a name that stands in the loop
  std::string object(program.assigned_name(loader.ref()));
  if (!is_visible(program, loop, loader, object)) {
    const bool here =
        program.enclosing_function(loop.batches) == program.enclosing_function(loop.epochs);
    named = here && loop.iterable && loop.iterable.kind() == Kind::identifier
                ? loop.iterable
                : given_to_batches(program, loop);
    if (!named || is_bound_in_round(loop, named)) return std::nullopt;
    object = named.text();
  } else if (loop.iterable.text() != object &&
             !is_made_in_all_runs(program, loader.ref(), loop.epochs)) {
    return std::nullopt;
  }
  object += ".sampler";
  if (has_sampler_in_all_runs(program, loop, loader, sampler, named)) return Told{object, ""};
  return Told{object, "hasattr(" + object + ", \"set_epoch\")"};
}

// second of zip(first, second), where the one DataLoader call of a function makes both of them.
std::vector<std::string> zipped_beside(const Program& program, const diagnose::TrainingLoop& loop,
                                       const CallRef& loader) {
  std::vector<std::string> out;
  if (loop.batches.kind() != Kind::for_statement) return out;
  for (const CallRef& zip : facts::calls_in(loop.batches.child(Field::right))) {
    if (zip.call->name != "zip" || zip.receiver()) continue;
    for (std::size_t i = 0; const Ref each = zip.positional(i); ++i) {
      const auto made = loaders_of(program, each);
      if (each.kind() == Kind::identifier && each.text() != loop.iterable.text() &&
          !is_bound_in_round(loop, each) &&
          std::any_of(made.begin(), made.end(),
                      [&](const CallRef& other) { return other.ref() == loader.ref(); }))
        out.emplace_back(each.text());
    }
  }
  return out;
}

std::string call_under(const std::string& object, const std::string& condition, Ref variable) {
  const std::string call = object + ".set_epoch(" + std::string(variable.text()) + ")";
  return condition.empty() ? call : "if " + condition + ":\n\t" + call;
}

}  // namespace

void fix_set_epoch(const Program& program, const diagnose::TrainingLoop& loop,
                   const CallRef& loader, const CallRef& sampler, Finding& finding) {
  if (loop.epochs.kind() != Kind::for_statement || !restarts_with_round(program, loop)) return;
  const Ref variable = loop.epochs.child(Field::left);
  if (!variable || variable.kind() != Kind::identifier || variable.text() == "_") return;
  const auto told = told_of(program, loop, loader, sampler);
  if (!told) return;
  std::string calls = call_under(told->object, told->condition, variable);
  if (told->object == std::string(loop.iterable.text()) + ".sampler")
    for (const std::string& other : zipped_beside(program, loop, loader)) {
      const std::string object = other + ".sampler";
      calls += "\n" + call_under(object,
                                 told->condition.empty() ? std::string()
                                                         : "hasattr(" + object + ", \"set_epoch\")",
                                 variable);
    }
  insert_first(loop.epochs.with(loop.epochs.child(Field::body).node), calls,
               "Call set_epoch in the epoch loop", finding);
}

}  // namespace bench::pitfalls
