#include "diagnose/to_ddp/loader_choice.hpp"

#include "scenarios/pitfalls/data/loaders.hpp"
#include "scenarios/pitfalls/program/argument_for.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"

#include <algorithm>
#include <vector>

namespace bench::diagnose {
namespace {

namespace facts = pitfalls::facts;

std::vector<CallRef> reached_sites(const Program& program, const CallRef& loader) {
  std::vector<CallRef> out;
  const FunctionRef function = program.enclosing_function(loader.ref());
  if (!function) return out;
  for (const CallRef& site : program.call_sites(function))
    if (facts::is_reachable(program, site.ref())) out.push_back(site);
  return out;
}

bool names_training(Ref word) {
  std::string text = facts::lowered(last_word(word));
  std::erase(text, '_');
  return text == "train" || text == "istrain" || text == "training" || text == "istraining";
}

bool is_name(Ref node) { return node.kind() == Kind::identifier || node.kind() == Kind::attribute; }

// split == "train", "train" in split, self.is_train
bool asks_for_training(Ref condition) {
  if (is_name(condition)) return names_training(condition);
  if (condition.kind() != Kind::comparison) return false;
  const auto& tree = condition.module->tree();
  if (tree.child_count(condition.node) != 2) return false;
  const Ref left = condition.with(tree.child_at(condition.node, 0));
  const Ref right = condition.with(tree.child_at(condition.node, 1));
  const std::string_view text = condition.text();
  const auto says = [](Ref word) {
    return word.kind() == Kind::string && pitfalls::says_any(word.text(), {"train"}) &&
           !pitfalls::says_any(word.text(), {"val", "test"});
  };
  if (facts::contains(text, " not in ") || facts::contains(text, "!=")) return false;
  return facts::contains(text, "==") ? says(left) || says(right)
                                     : facts::contains(text, " in ") && says(left);
}

bool says_evaluation(std::string_view text) {
  return pitfalls::says_any(text, {"val", "test", "infer", "predict", "dev_"}) &&
         !pitfalls::says_any(text, {"train"});
}

// What the call's result is for: its name, and the words that it is given.
std::string purpose_of(const Program& program, const CallRef& site) {
  std::string out(program.assigned_name(site.ref()));
  for (const Ref given : facts::arguments_of(site)) out += " " + std::string(given.text());
  return out;
}

Ref default_of(const Program& program, Ref parameter) {
  for (const std::uint32_t index : parameter.module->defs_of(parameter.text(), false)) {
    const Def& def = parameter.module->defs()[index];
    if (def.kind == DefKind::parameter && def.value != kNoNode &&
        program.enclosing_function(parameter.with(def.target)) ==
            program.enclosing_function(parameter))
      return parameter.with(def.value);
  }
  return {};
}

// make(data, shuffle=True) for what trains, make(data, shuffle=False) for the rest, and each
// written out.
bool is_told_by_calls(const Program& program, const CallRef& loader, Ref parameter) {
  const FunctionRef function = program.enclosing_function(loader.ref());
  const auto sites = reached_sites(program, loader);
  bool trains = false;
  for (const CallRef& site : sites) {
    if (site.has_splat()) return false;
    const Ref named = facts::argument_for(site, function, parameter.text());
    const Ref given = named ? named : default_of(program, parameter);
    const std::string purpose = purpose_of(program, site);
    if (given.kind() == Kind::true_literal && !says_evaluation(purpose))
      trains = true;
    else if (given.kind() != Kind::false_literal || pitfalls::says_any(purpose, {"train"}))
      return false;
  }
  return trains;
}

// The parameter is read as it came.
bool is_plain_parameter(const Program& program, Ref name) {
  const auto defs = name.module->defs_of(name.text(), false);
  const FunctionRef function = program.enclosing_function(name);
  return facts::is_parameter(program, name) &&
         std::none_of(defs.begin(), defs.end(), [&](const std::uint32_t index) {
           const Def& def = name.module->defs()[index];
           return def.kind != DefKind::parameter &&
                  program.enclosing_function(name.with(def.target)) == function;
         });
}

// shuffle = True in the branch for training, shuffle = False in the others.
bool is_set_in_branches(const Program& program, Ref name) {
  bool trains = false;
  for (const Source& source : program.sources(name)) {
    const bool holds = source.ref.kind() == Kind::true_literal;
    const auto guards = program.guards(source.ref);
    const auto is_for_training = [&](const Guard& guard) {
      return guard.holds == holds && asks_for_training(guard.condition);
    };
    if ((!holds && source.ref.kind() != Kind::false_literal) ||
        std::none_of(guards.begin(), guards.end(), is_for_training))
      return false;
    trains = trains || holds;
  }
  return trains;
}

}  // namespace

bool serves_several(const Program& program, const CallRef& loader) {
  return reached_sites(program, loader).size() > 1;
}

bool is_named_for_training(const Program& program, const CallRef& loader) {
  return pitfalls::says_any(program.assigned_name(loader.ref()), {"train"});
}

bool is_in_branch_for_training(const Program& program, const CallRef& loader) {
  const auto guards = program.guards(loader.ref());
  return std::any_of(guards.begin(), guards.end(), [](const Guard& guard) {
    return guard.holds && asks_for_training(guard.condition);
  });
}

std::string choice_of_item(const Program& program, const CallRef& loader) {
  const auto& tree = loader.module->tree();
  const NodeId around = tree.ancestor(loader.call->node, Kind::comprehension);
  if (around == kNoNode) return {};
  Ref clause;
  for (NodeId at = tree[around].first_child; at != kNoNode; at = tree[at].next_sibling)
    if (tree[at].kind == Kind::for_in_clause) clause = loader.ref().with(at);
  const Ref name = clause.child(Field::left);
  const auto& items = program.sources(clause.child(Field::right));
  if (name.kind() != Kind::identifier || items.size() != 1) return {};
  const Ref list = items.front().ref;
  if (list.kind() != Kind::list && list.kind() != Kind::tuple) return {};
  std::string training;
  const auto& words = list.module->tree();
  for (NodeId at = words[list.node].first_child; at != kNoNode; at = words[at].next_sibling) {
    const std::string word = program.string(list.with(at)).value_or("");
    if (word.empty() || (!training.empty() && word.starts_with("train"))) return {};
    if (word.starts_with("train")) training = word;
  }
  return training.empty() ? "" : std::string(name.text()) + " == '" + training + "'";
}

Ref choice_of_training(const Program& program, const CallRef& loader) {
  const Ref shuffle = loader.keyword("shuffle");
  if (!shuffle || !loader.module->tree().contains(loader.call->node, shuffle.node)) return {};
  if (asks_for_training(shuffle)) return shuffle;
  if (shuffle.kind() != Kind::identifier) return {};
  const bool tells = is_plain_parameter(program, shuffle)
                         ? is_told_by_calls(program, loader, shuffle)
                         : is_set_in_branches(program, shuffle);
  return tells ? shuffle : Ref{};
}

std::vector<CallRef> loaders_within(const Program& program, Ref object) {
  std::vector<CallRef> out;
  const ClassRef cls = program.class_of(object);
  if (!cls) return out;
  for (const std::string_view name : {"__iter__", "__next__"}) {
    const FunctionRef method = program.method(cls, name);
    if (!method) continue;
    const auto& tree = method.module->tree();
    const NodeId body = method.function->body;
    for (NodeId node = body; node < tree[body].last; ++node) {
      if (tree[node].kind != Kind::attribute) continue;
      for (const CallRef& loader : pitfalls::loaders_of(program, {method.module, node}))
        if (std::none_of(out.begin(), out.end(),
                         [&](const CallRef& each) { return each.ref() == loader.ref(); }))
          out.push_back(loader);
    }
  }
  return out;
}

namespace {

bool gives_on(Ref loop) {
  const auto& tree = loop.module->tree();
  for (NodeId node = loop.node; node < tree[loop.node].last; ++node)
    if (tree[node].kind == Kind::yield_expression) return true;
  return false;
}

}  // namespace

std::vector<PassOver> passes_without_training(const Program& program) {
  std::vector<PassOver> out;
  const auto& loops = program.training_loops();
  for (const Module* module : program.modules())
    for (const NodeId node : module->loops()) {
      const Ref loop{module, node};
      const bool trains = std::any_of(loops.begin(), loops.end(), [&](const TrainingLoop& each) {
        return each.batches.module == module && module->tree().contains(node, each.batches.node);
      });
      if (trains || loop.kind() != Kind::for_statement || gives_on(loop)) continue;
      for (const CallRef& each : pitfalls::loaders_of(program, loop.child(Field::right)))
        out.push_back({loop, each});
    }
  return out;
}

}  // namespace bench::diagnose
