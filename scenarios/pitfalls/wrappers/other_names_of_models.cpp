#include "scenarios/pitfalls/wrappers/other_names_of_models.hpp"

#include "diagnose/model/made_at.hpp"
#include "scenarios/pitfalls/program/facts.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Field;
using diagnose::Kind;

namespace {

constexpr std::size_t kMostNames = 8;

// net of self.model, self.optimizer = net, optimizer; the value itself where one name is given one.
Ref value_given(Ref target, Ref value, int element) {
  if (!value || element < 0 || value.kind() != Kind::tuple) return element < 0 ? value : Ref{};
  return value.with(target.module->tree().child_at(value.node, static_cast<std::size_t>(element)));
}

// Trainer(model) may be given it on its device, and DDP(model.to(gpu)) is: the attribute's own
// moves say nothing of that.
bool may_be_placed(const Program& program, Ref model) {
  if (facts::is_parameter(program, model)) return true;
  const auto& sources = program.sources(model);
  return std::any_of(sources.begin(), sources.end(), [](const diagnose::Source& source) {
    const std::string_view text = source.ref.text();
    return facts::contains(text, ".to(") || facts::contains(text, ".cuda(");
  });
}

// self.model of self.model = model in the same function.
void add_attributes_of(const Program& program, Ref model, std::vector<Ref>& models) {
  const auto inside = program.enclosing_function(model);
  if (may_be_placed(program, model)) return;
  for (const diagnose::Def& def : model.module->defs()) {
    if (!def.is_attribute || def.kind != diagnose::DefKind::assign ||
        def.value == diagnose::kNoNode)
      continue;
    const Ref target = model.with(def.target);
    if (value_given(target, model.with(def.value), def.element).text() == model.text() &&
        target.text().starts_with("self.") && program.enclosing_function(target) == inside)
      models.push_back(target);
  }
}

}  // namespace

void add_other_names(const Program& program, std::vector<Ref>& models) {
  for (std::size_t i = 0; i < models.size(); ++i) {
    if (models[i].kind() != Kind::identifier) continue;
    for (const std::uint32_t index : models[i].module->defs_of(models[i].text(), false)) {
      const diagnose::Def& def = models[i].module->defs()[index];
      Ref value = models[i].with(def.value);
      if (def.kind != diagnose::DefKind::assign || def.element >= 0 || !value ||
          program.enclosing_function(value) != program.enclosing_function(models[i]))
        continue;
      if (value.kind() == Kind::attribute && value.text().ends_with(".module"))
        value = value.child(diagnose::Field::object);
      if (value.kind() == Kind::identifier && value.text() != models[i].text())
        models.push_back(value);
    }
    add_attributes_of(program, models[i], models);
    if (models.size() > kMostNames) return;
  }
}

CallRef seen_beside(const Program& program, const CallRef& optimizer, Ref model,
                    const std::vector<ModelMove>& moves) {
  if (!model.text().starts_with("self.")) return optimizer;
  for (const Ref place : diagnose::places_of(program, optimizer.ref()))
    if (const CallRef call = program.as_call(place);
        call && std::any_of(moves.begin(), moves.end(), [&](const ModelMove& move) {
          return program.enclosing_function(move.at.ref()) == program.enclosing_function(place);
        }))
      return call;
  return optimizer;
}

}  // namespace bench::pitfalls
