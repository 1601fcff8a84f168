#include "scenarios/pitfalls/metrics/loss_alone.hpp"

#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/variables.hpp"
#include "scenarios/pitfalls/program/words.hpp"

#include <algorithm>
#include <set>

namespace bench::pitfalls {

using diagnose::Field;
using diagnose::Kind;
using diagnose::NodeId;

namespace {

// val_loss, losses, totals["loss"], and not losses["accuracy"].
bool is_loss(std::string_view name) {
  if (name.ends_with(']')) name = name.substr(std::min(name.rfind('['), name.size()));
  const auto words = words_of_name(name);
  return std::any_of(words.begin(), words.end(),
                     [](const std::string& word) { return word == "loss" || word == "losses"; });
}

// self.correct, which another method of the class may reduce.
bool may_be_reduced_in_class(const Program& program, Ref loop, const std::string& name,
                             const std::vector<Reduction>& reductions) {
  const diagnose::ClassRef owner = program.enclosing_class(loop);
  return owner && name.starts_with("self.") &&
         std::any_of(reductions.begin(), reductions.end(), [&](const Reduction& reduction) {
           const auto there = program.enclosing_function(reduction.call);
           return there && program.enclosing_class(reduction.call) == owner &&
                  facts::contains(Ref{there.module, there.function->body}.text(), name);
         });
}

// logger of logger.synchronize_between_processes(): what the object holds is reduced, and nothing
// beside it. Empty where the ranks reduce in other ways too.
std::string object_reduced(const Program& program, diagnose::FunctionRef function,
                           const std::vector<Reduction>& reductions) {
  std::string object;
  for (const Reduction& reduction : reductions) {
    const auto there = program.enclosing_function(reduction.call);
    if (there != function) continue;
    const CallRef call = program.as_call(reduction.call);
    const Ref receiver = call ? call.receiver() : Ref{};
    if (reduction.value || !receiver || call.positional(0) || !is_variable(receiver) ||
        !call.module->qualified(receiver.node).empty())
      return {};
    if (!object.empty() && object != receiver.text()) return {};
    object = receiver.text();
  }
  return object;
}

// A method of the object that is no figure of it.
bool is_work_of_meters(std::string_view name) {
  return name == "update" || name == "log_every" || name == "add_meter" ||
         facts::contains(name, "synchronize") || facts::contains(name, "reduce");
}

// What the function reads of the object: loss of logger.loss.global_avg; `meters` for all.
std::set<std::string> figures_of(diagnose::FunctionRef function, std::string_view object) {
  std::set<std::string> out;
  const auto& tree = function.module->tree();
  for (NodeId id = function.function->body; id < tree[function.function->body].last; ++id) {
    if (tree[id].kind != Kind::attribute || tree.text(tree.child(id, Field::object)) != object)
      continue;
    const std::string name(tree.text(tree.child(id, Field::attribute)));
    const NodeId item = tree[id].parent;
    const bool is_updated = name == "meters" && tree[item].kind == Kind::subscript &&
                            tree[tree[item].parent].kind == Kind::attribute &&
                            tree.text(tree.child(tree[item].parent, Field::attribute)) == "update";
    if (!is_work_of_meters(name) && !is_updated) out.insert(name);
  }
  return out;
}

// logger.update(loss=loss, **losses) is all that the loop gives it.
bool takes_losses_alone(Ref loop, std::string_view object) {
  bool any = false;
  for (const CallRef& call : facts::calls_in(loop)) {
    const std::string_view receiver = call.receiver() ? call.receiver().text() : "";
    if (call.call->name != "update" || !receiver.starts_with(object)) continue;
    if (receiver != object || call.positional(0)) return false;  // logger.meters["acc"].update(acc)
    const Ref arguments = call.ref().child(Field::arguments);
    const auto& tree = arguments.module->tree();
    for (NodeId at = tree[arguments.node].first_child; at != diagnose::kNoNode;
         at = tree[at].next_sibling) {
      const bool named = tree[at].kind == Kind::keyword_argument;
      const auto name = tree.text(named ? tree.child(at, Field::name) : at);
      if (!is_loss(name) && !(named && name == "lr")) return false;
    }
    any = true;
  }
  return any;
}

bool meters_losses_alone(Ref loop, diagnose::FunctionRef function, std::string_view object) {
  const auto figures = figures_of(function, object);
  const bool named =
      !figures.empty() &&
      std::all_of(figures.begin(), figures.end(), [](const auto& each) { return is_loss(each); });
  return named || takes_losses_alone(loop, object);
}

}  // namespace

bool reduces_losses_alone(const Program& program, Ref loop, const MetricSum& sum,
                          const std::vector<Reduction>& reductions) {
  const diagnose::FunctionRef function = program.enclosing_function(loop);
  if (!function) return is_loss(sum.name);
  if (const std::string object = object_reduced(program, function, reductions); !object.empty())
    return meters_losses_alone(loop, function, object);
  if (!is_loss(sum.name)) return false;
  const auto sums = sums_of_metrics(program, loop);
  return std::all_of(sums.begin(), sums.end(), [&](const MetricSum& each) {
    return is_loss(each.name) || (!may_reduce(program, loop, each.name, reductions) &&
                                  !may_be_reduced_in_class(program, loop, each.name, reductions));
  });
}

}  // namespace bench::pitfalls
