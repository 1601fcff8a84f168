// What a model has and its wrapper has not, where functions are handed the wrapper.
#include "diagnose/to_ddp/remaining/topics.hpp"
#include "scenarios/pitfalls/program/argument_for.hpp"
#include "scenarios/pitfalls/program/attribute_attempt.hpp"
#include "scenarios/pitfalls/program/edits.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"
#include "scenarios/pitfalls/wrappers/wrapper_names.hpp"

#include <algorithm>

namespace bench::diagnose {
namespace {

using pitfalls::facts::contains;

constexpr int kCalls = 3;  // train(model) -> save(model)

// The wrapper that the name is wherever there are ranks; null where it may be something else.
const Wrap* wrapper_with_ranks(const Program& program, Ref name) {
  const Wrap* const wrap = program.wrap_of(name);
  if (wrap == nullptr || wrap->kind != Wrapper::ddp ||
      pitfalls::facts::is_given_to_one_of_several(program, name, *wrap))
    return nullptr;
  const auto guards = program.guards(wrap->call.ref());
  if (!std::all_of(guards.begin(), guards.end(), [](const Guard& guard) {
        return guard.holds && contains(guard.condition.text(), "is_initialized()");
      }))
    return nullptr;
  const Ref made = wrap->call.ref();
  if (program.enclosing_function(made) == program.enclosing_function(name) && name.node < made.node)
    return nullptr;
  const auto& inner = program.module_sources(wrap->module);
  const auto& sources = program.module_sources(name);
  const bool is_it = std::all_of(sources.begin(), sources.end(), [&](const Source& source) {
    return program.wrap_made_by(source.ref) != nullptr ||
           std::any_of(inner.begin(), inner.end(),
                       [&](const Source& below) { return below.ref == source.ref; });
  });
  return is_it ? wrap : nullptr;
}

// The wrapper that a call hands to the function under the parameter's name; null where none does.
const Wrap* handed_wrapper(const Left& left, Ref name, int calls) {
  const Program& program = left.program;
  const FunctionRef function = program.enclosing_function(name);
  if (!function || calls == 0 || !pitfalls::facts::is_parameter(program, name)) return nullptr;
  for (const CallRef& site : program.call_sites(function)) {
    const Ref given = pitfalls::facts::argument_for(site, function, name.text());
    if (!given || (given.kind() != Kind::identifier && given.kind() != Kind::attribute) ||
        !left.is_run(site.ref()))
      continue;
    if (const Wrap* const wrap = wrapper_with_ranks(program, given)) return wrap;
    if (const Wrap* const wrap = handed_wrapper(left, given, calls - 1)) return wrap;
  }
  return nullptr;
}

// The class that is wrapped gives itself the attribute, or defines the method.
bool has_of_its_own(const Program& program, const Wrap& wrap, std::string_view name) {
  return !wrap.classes.empty() &&
         std::all_of(wrap.classes.begin(), wrap.classes.end(), [&](const ClassRef& cls) {
           if (program.method(cls, name)) return true;
           const auto& lineage = program.lineage(cls);
           return std::any_of(lineage.begin(), lineage.end(), [&](const ClassRef& each) {
             const auto& tree = each.module->tree();
             const auto defs = each.module->defs_of(name, true);
             return std::any_of(defs.begin(), defs.end(), [&](std::uint32_t index) {
               const NodeId target = each.module->defs()[index].target;
               return tree.contains(each.cls->node, target) &&
                      tree.text(target).starts_with("self.");
             });
           });
         });
}

// model = model.module in the function, or a test around the use, or in its statement, that knows
// of the wrapper.
bool is_prepared_for_wrapper(const Program& program, Ref object, Ref use) {
  const FunctionRef function = program.enclosing_function(use);
  const auto& tree = use.module->tree();
  const auto defs = use.module->defs_of(object.text(), false);
  if (std::any_of(defs.begin(), defs.end(), [&](std::uint32_t index) {
        const Def& def = use.module->defs()[index];
        return def.kind != DefKind::parameter && tree.contains(function.function->body, def.target);
      }))
    return true;
  if (contains(pitfalls::statement_of(use).text().substr(0, 400),
               std::string(object.text()) + ".module"))
    return true;
  return program.under(use, [](Ref condition, bool) {
    return pitfalls::says_any(
        condition.text(), {"module", "isinstance", "hasattr", "parallel", "gpu", "distributed"});
  });
}

// setattr and model.name = value leave it on the wrapper itself.
bool is_left_there(const Program& program, Ref object, std::string_view name) {
  const std::string stored = std::string(object.text()) + "." + std::string(name) + " = ";
  const auto& modules = program.modules();
  return std::any_of(modules.begin(), modules.end(), [&](const Module* module) {
    return contains(module->tree().source(), stored);
  });
}

}  // namespace

void tell_attributes_of_handed_models(Left& left) {
  const Program& program = left.program;
  for (const Module* module : program.modules())
    for (NodeId node = 0; node < module->tree().size(); ++node) {
      const Ref use{module, node};
      if (use.kind() != Kind::attribute) continue;
      const Ref object = use.child(Field::object);
      const std::string_view name = use.child(Field::attribute).text();
      if (object.kind() != Kind::identifier || pitfalls::is_wrapper_api(name) ||
          !pitfalls::facts::is_parameter(program, object) || !left.is_run(use))
        continue;
      const Wrap* const wrap = handed_wrapper(left, object, kCalls);
      if (wrap == nullptr || !has_of_its_own(program, *wrap, name) ||
          is_prepared_for_wrapper(program, object, use) || left.is_found(use, "DDP012") ||
          pitfalls::is_attempt(use, name) || is_left_there(program, object, name))
        continue;
      const std::string text(object.text());
      left.tell(Harm::stops, {use},
                "`" + text + "` is the wrapper here (" + place_of(wrap->call.ref()) +
                    "), which has no attribute '" + std::string(name) + "': AttributeError. Use " +
                    text + ".module." + std::string(name) + ".");
    }
}

}  // namespace bench::diagnose
