#include "scenarios/pitfalls/wrappers/mode_of_object.hpp"

#include "diagnose/model/made_at.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/variables.hpp"
#include "scenarios/pitfalls/program/words.hpp"
#include "scenarios/pitfalls/reach/switches.hpp"

#include <algorithm>
#include <string>
#include <string_view>

namespace bench::pitfalls {

using diagnose::Def;
using diagnose::Field;
using diagnose::FunctionRef;
using diagnose::Guard;
using diagnose::Kind;

namespace {

// The method runs the use, itself or in what it calls.
bool comes_to(const Program& program, FunctionRef method, FunctionRef of_use) {
  if (method == of_use) return true;
  const auto reached = program.reached({method.module, method.function->body});
  return std::find(reached.begin(), reached.end(), of_use) != reached.end();
}

bool is_switched_elsewhere(const Program& program, const Guard& guard, Ref attribute, Ref use) {
  const auto of_use = program.enclosing_function(use);
  const auto owner = program.enclosing_class(attribute);
  if (!of_use || !owner || !(program.enclosing_class(use) == owner)) return false;
  bool is_off = false;
  bool is_switched = false;
  for (const Def* def : values_of(program, attribute)) {
    if (def->kind != diagnose::DefKind::assign || def->element >= 0) return false;
    const Ref value = attribute.with(def->value);
    const auto method = program.enclosing_function(value);
    if (!method) return false;
    const bool leads_past =
        facts::leads_past(program, guard, attribute.text(), program.evaluate(value));
    if (method.function->name == "__init__") {
      is_off = leads_past;
    } else if (!leads_past) {
      if (comes_to(program, method, of_use)) return false;
      is_switched = true;
    }
  }
  return is_off && is_switched;
}

// opt.isTrain, which the options of this program set to False and nothing else; that one object has
// it from another, as in model.isTrain = opt.isTrain, sets nothing.
bool is_off_in_this_program(const Program& program, const Guard& guard, Ref attribute) {
  const std::string_view name = attribute.child(Field::attribute).text();
  bool is_off = false;
  for (const auto& [module, def, object] : program.attribute_defs(name)) {
    if (def->kind != diagnose::DefKind::assign || def->element >= 0) return false;
    const Ref value{module, def->value};
    if (value.kind() == Kind::attribute && value.child(Field::attribute).text() == name) continue;
    if (!facts::leads_past(program, guard, attribute.text(), program.evaluate(value))) return false;
    is_off = true;
  }
  return is_off;
}

}  // namespace

bool is_wrapped_in_another_mode(const Program& program, const diagnose::Wrap& wrap, Ref use) {
  for (const Guard& guard : diagnose::guards_where_made(program, wrap.call)) {
    const auto& tree = guard.condition.module->tree();
    for (diagnose::NodeId id = guard.condition.node; id < tree[guard.condition.node].last; ++id) {
      const Ref part = guard.condition.with(id);
      if (part.kind() != Kind::attribute) continue;
      if (part.child(Field::object).text() == "self"
              ? is_switched_elsewhere(program, guard, part, use)
              : is_off_in_this_program(program, guard, part))
        return true;
    }
  }
  return false;
}

bool asks_for_run(Ref condition) {
  std::string text = facts::lowered(condition.text());
  constexpr std::string_view kModel = "model";
  for (std::size_t at = text.find(kModel); at != std::string::npos; at = text.find(kModel, at))
    text.replace(at, kModel.size(), "_");
  return holds_any(text, {"train", "test", "eval", "valid", "infer", "predict", "demo", "export",
                          "sampl", "generat", "mode", "phase", "split", "grad", "backward"});
}

namespace {

// args["arch"] == "a", of a setting that has nothing to do with where the program runs.
bool asks_for_mode(const Guard& guard) {
  const auto& tree = guard.condition.module->tree();
  return guard.condition.kind() == Kind::comparison &&
         tree.child_count(guard.condition.node) == 2 &&
         tree[tree.child_at(guard.condition.node, 1)].kind == Kind::string &&
         !says_any(guard.condition.text(),
                   {"gpu",    "cuda", "device",  "parallel", "dist",     "ddp",      "multi",
                    "single", "wrap", "backend", "launcher", "strategy", "__main__", "train",
                    "test",   "eval", "val",     "infer",    "predict",  "phase"});
}

bool is_made_in_a_mode(const Program& program, const diagnose::Wrap& wrap) {
  const auto guards = diagnose::guards_where_made(program, wrap.call);
  return std::any_of(guards.begin(), guards.end(),
                     [](const Guard& guard) { return guard.holds && asks_for_mode(guard); }) &&
         std::all_of(guards.begin(), guards.end(), [](const Guard& guard) {
           return asks_for_mode(guard) && !asks_for_run(guard.condition);
         });
}

// The use, or each call that leads to it, is made in another mode than the wrapper.
bool comes_in_another_mode(const Program& program, Ref use, Ref wrapper, int depth = 0) {
  constexpr int kMaxCallers = 3;
  if (facts::are_of_different_modes(wrapper, use)) return true;
  const auto function = program.enclosing_function(use);
  if (!function || depth == kMaxCallers) return false;
  const auto& sites = program.call_sites(function);
  return !sites.empty() && std::all_of(sites.begin(), sites.end(), [&](const CallRef& site) {
    return comes_in_another_mode(program, site.ref(), wrapper, depth + 1);
  });
}

}  // namespace

bool is_wrapped_in_one_mode(const Program& program, Ref use, Ref object) {
  if (object.kind() != Kind::attribute || object.child(Field::object).text() != "self")
    return false;
  const diagnose::Wrap* wrapper = nullptr;
  const auto& sources = program.module_sources(object);
  for (const diagnose::Source& source : sources)
    if (const auto* wrap = program.wrap_made_by(source.ref))
      if (is_made_in_a_mode(program, *wrap)) wrapper = wrap;
  if (wrapper == nullptr || sources.size() < 2 ||
      comes_in_another_mode(program, use, wrapper->call.ref()))
    return false;
  return std::all_of(sources.begin(), sources.end(), [&](const diagnose::Source& source) {
    return source.ref == wrapper->call.ref() || source.ref.kind() == Kind::none_literal ||
           program.wrap_made_by(source.ref) != nullptr ||
           facts::exclusive(source.ref, wrapper->call.ref());
  });
}

}  // namespace bench::pitfalls
