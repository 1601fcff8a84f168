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

// split == "train", "train" in split, self.is_train
bool asks_for_training(Ref condition) {
  if (pitfalls::names_training(condition)) return true;
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

namespace {

// TABLE[name](args), TABLE.get(name)(args), and cls(args) after cls = TABLE[name]; eval(name)(args)
// may be anything.
bool picks_from_table(const Program& program, const CallRef& pick) {
  const auto is_item = [&](Ref picked) {
    const CallRef get = program.as_call(picked);
    return picked.kind() == Kind::subscript || (get && get.call->name == "get");
  };
  const Ref function{pick.module, pick.call->function};
  if (function.kind() != Kind::identifier) return is_item(function);
  const auto& defs = pick.module->defs_of(function.text(), false);
  return std::any_of(defs.begin(), defs.end(), [&](const std::uint32_t index) {
    const Def& def = pick.module->defs()[index];
    return def.value != kNoNode && is_item(function.with(def.value));
  });
}

// Of a method that makes several, those of the same name.
std::vector<CallRef> loaders_like(const Program& program, const CallRef& loader,
                                  FunctionRef method) {
  std::vector<CallRef> out;
  for (const CallRef& each : program.calls(Api::data_loader))
    if (program.enclosing_function(each.ref()) == method) out.push_back(each);
  const std::string_view name = program.assigned_name(loader.ref());
  if (out.size() > 1)
    std::erase_if(out, [&](const CallRef& each) {
      return name.empty() || program.assigned_name(each.ref()) != name;
    });
  return out;
}

}  // namespace

std::vector<CallRef> loaders_in_place_of(const Program& program, const CallRef& loader) {
  std::vector<CallRef> out;
  const FunctionRef own = program.enclosing_function(loader.ref());
  const ClassRef cls = program.enclosing_class(loader.ref());
  if (!own || !cls) return out;
  for (const CallRef& pick : program.picks_of(cls)) {
    if (!picks_from_table(program, pick)) continue;
    for (const ClassRef& other : program.classes_of_call(pick)) {
      const FunctionRef method = program.method(other, own.function->name);
      if (other == cls || !method || method == own) continue;
      const auto alike = loaders_like(program, loader, method);
      out.insert(out.end(), alike.begin(), alike.end());
    }
  }
  return out;
}

namespace {

// The clause or the statement that makes a loader for each item: for x in ["train", "val"].
std::vector<Ref> rounds_around(const Program& program, const CallRef& loader) {
  std::vector<Ref> out;
  const auto& tree = loader.module->tree();
  const FunctionRef function = program.enclosing_function(loader.ref());
  for (NodeId at = tree[loader.call->node].parent; at != kNoNode; at = tree[at].parent) {
    const Ref around = loader.ref().with(at);
    if (tree[at].kind == Kind::lambda || program.enclosing_function(around) != function) break;
    if (tree[at].kind == Kind::for_statement) out.push_back(around);
    if (tree[at].kind != Kind::comprehension) continue;
    for (NodeId part = tree[at].first_child; part != kNoNode; part = tree[part].next_sibling)
      if (tree[part].kind == Kind::for_in_clause) out.push_back(loader.ref().with(part));
  }
  return out;
}

std::vector<Ref> children_of(Ref node) {
  std::vector<Ref> out;
  const auto& tree = node.module->tree();
  for (NodeId at = tree[node.node].first_child; at != kNoNode; at = tree[at].next_sibling)
    out.push_back(node.with(at));
  return out;
}

bool is_list(Ref node) { return node.kind() == Kind::list || node.kind() == Kind::tuple; }

std::vector<Ref> items_of(const Program& program, Ref list, int depth = 0);

// The keys of a dictionary that is written out, {"train": a, "val": b} or {x: make(x) for x in a}.
std::vector<Ref> keys_of(const Program& program, Ref dictionary, int depth) {
  std::vector<Ref> out;
  for (const Ref part : children_of(dictionary)) {
    if (part.kind() == Kind::pair) out.push_back(part.child(Field::key));
    if (part.kind() == Kind::for_in_clause && out.size() == 1 &&
        out.front().text() == part.child(Field::left).text())
      return items_of(program, part.child(Field::right), depth + 1);
  }
  return out;
}

// What a loop goes over, as far as it is written out; of pairs the first.
std::vector<Ref> items_of(const Program& program, Ref list, int depth) {
  constexpr int kDepth = 3;  // sets.items() of {x: make(x) for x in splits}
  const CallRef call = program.as_call(list);
  const bool is_view =
      call && call.receiver() && (call.call->name == "items" || call.call->name == "keys");
  const auto& sources = program.sources(is_view ? call.receiver() : list);
  if (sources.size() != 1 || depth > kDepth) return {};
  const Ref made = sources.front().ref;
  if (made.kind() == Kind::dictionary || made.kind() == Kind::comprehension)
    return made.text().starts_with("{") ? keys_of(program, made, depth) : std::vector<Ref>{};
  if (!is_list(made)) return {};
  std::vector<Ref> out = children_of(made);
  for (Ref& item : out)
    if (is_list(item) && !children_of(item).empty()) item = children_of(item).front();
  return out;
}

// 'train' of ["train", "val"], where all the others are for evaluation.
std::string training_word(const Program& program, const std::vector<Ref>& items) {
  std::string training;
  for (const Ref item : items) {
    const std::string word = program.string(item).value_or("");
    const bool trains = word.starts_with("train");
    if ((trains && !training.empty()) || (!trains && !says_evaluation(word) && word != "dev"))
      return {};
    if (trains) training = word;
  }
  return training;
}

// train_set of (train_set, val_set), where all the others are for evaluation.
std::string training_name(const std::vector<Ref>& items) {
  std::string training;
  for (const Ref item : items) {
    const bool trains = pitfalls::says_any(item.text(), {"train"});
    if (item.kind() != Kind::identifier || (trains && !training.empty()) ||
        (!trains && !says_evaluation(item.text())))
      return {};
    if (trains) training = item.text();
  }
  return training;
}

}  // namespace

std::string choice_of_item(const Program& program, const CallRef& loader) {
  for (const Ref round : rounds_around(program, loader)) {
    Ref name = round.child(Field::left);
    const bool is_pair = name.kind() != Kind::identifier;
    if (is_pair) name = children_of(name).empty() ? Ref{} : children_of(name).front();
    const auto items = items_of(program, round.child(Field::right));
    if (name.kind() != Kind::identifier || items.size() < 2) continue;
    if (const std::string word = training_word(program, items); !word.empty())
      return std::string(name.text()) + " == '" + word + "'";
    const std::string set = is_pair ? "" : training_name(items);
    if (!set.empty()) return std::string(name.text()) + " is " + set;
  }
  return {};
}

Ref word_of_training(const CallRef& loader) {
  const Ref shuffle = loader.keyword("shuffle");
  const bool is_here = shuffle && loader.module->tree().contains(loader.call->node, shuffle.node);
  return is_here && asks_for_training(shuffle) ? shuffle : Ref{};
}

Ref choice_of_training(const Program& program, const CallRef& loader) {
  if (const Ref word = word_of_training(loader)) return word;
  const Ref shuffle = loader.keyword("shuffle");
  if (!shuffle || !loader.module->tree().contains(loader.call->node, shuffle.node) ||
      shuffle.kind() != Kind::identifier)
    return {};
  const bool tells = is_plain_parameter(program, shuffle)
                         ? is_told_by_calls(program, loader, shuffle)
                         : is_set_in_branches(program, shuffle);
  return tells ? shuffle : Ref{};
}

}  // namespace bench::diagnose
