#include "scenarios/pitfalls/forgotten_number.hpp"

#include "scenarios/pitfalls/facts.hpp"

#include <algorithm>
#include <vector>

namespace bench::pitfalls {

using diagnose::Def;
using diagnose::DefKind;
using diagnose::Field;
using diagnose::FunctionRef;
using diagnose::Kind;
using diagnose::kNoNode;
using diagnose::Module;
using diagnose::NodeId;

namespace {

struct Assigned {
  std::string name;
  NodeId target;
  Ref value;
};

bool is_plain(Ref at) {
  return at.kind() == Kind::identifier ||
         (at.kind() == Kind::attribute && at.child(Field::object).text() == "self");
}

// Empty for what is no variable of its own: x.grad, table[i].
std::string variable(Ref at) {
  if (is_plain(at)) return std::string(at.text());
  if (at.kind() != Kind::subscript || !is_plain(at.child(Field::value))) return {};
  const auto key = at.module->tree().string_value(at.child(Field::subscript).node);
  return key ? std::string(at.child(Field::value).text()) + "[\"" + *key + "\"]" : std::string{};
}

bool meet(const VariableNames& a, const VariableNames& b) {
  return std::any_of(a.begin(), a.end(), [&](const std::string& name) { return b.contains(name); });
}

bool says_any(std::string_view text, std::initializer_list<std::string_view> words) {
  const std::string plain = facts::lowered(text);
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return facts::contains(plain, word); });
}

// total += x and losses.append(x) of the subtree.
std::vector<Assigned> additions_in(Ref subtree) {
  std::vector<Assigned> out;
  const Module& module = *subtree.module;
  for (const NodeId node : module.nodes_of(Kind::augmented_assignment)) {
    if (!module.tree().contains(subtree.node, node)) continue;
    const Ref at = subtree.with(node);
    const Ref left = at.child(Field::left);
    if (facts::contains(at.text(), "+="))
      out.push_back({variable(left), left.node, at.child(Field::right)});
  }
  for (const CallRef& call : facts::calls_in(subtree))
    if (call.call->name == "append" && call.receiver() && call.positional(0))
      out.push_back({variable(call.receiver()), call.call->node, call.positional(0)});
  std::erase_if(out, [](const Assigned& each) { return each.name.empty(); });
  return out;
}

// Assignments and additions of the subtree, and what loops in it go over.
std::vector<Assigned> assignments_in(Ref subtree) {
  std::vector<Assigned> out = additions_in(subtree);
  const Module& module = *subtree.module;
  for (const Def& def : module.defs()) {
    if ((def.kind != DefKind::assign && def.kind != DefKind::loop) || def.value == kNoNode ||
        !module.tree().contains(subtree.node, def.target))
      continue;
    Ref value = subtree.with(def.value);
    if (value.kind() == Kind::tuple && def.element >= 0)
      value = value.with(module.tree().child_at(def.value, static_cast<std::size_t>(def.element)));
    const std::string name = variable(subtree.with(def.target));
    if (!name.empty()) out.push_back({name, def.target, value});
  }
  std::sort(out.begin(), out.end(),
            [](const Assigned& a, const Assigned& b) { return a.target < b.target; });
  return out;
}

// The names and what their values are made of.
VariableNames behind(VariableNames names, const std::vector<Assigned>& assigned) {
  for (bool grown = true; grown;) {
    grown = false;
    for (const Assigned& each : assigned) {
      if (!names.contains(each.name)) continue;
      for (const std::string& name : variables_in(each.value))
        grown = names.insert(name).second || grown;
    }
  }
  return names;
}

// A loss, a score or what the model says: counts and times are no metric.
bool scores(Ref value) {
  for (const CallRef& call : facts::calls_in(value))
    if (says_any(value.with(call.call->function).text(),
                 {"model", "net", "criter", "loss", "entropy", "acc", "metric", "score", "mse"}))
      return true;
  return false;
}

bool is_metric(const Assigned& addition, const std::vector<Assigned>& in_loop) {
  const std::string_view text = addition.value.text();
  if (addition.name == "n" || addition.name == "total" ||
      says_any(addition.name, {"count", "num", "cnt", "sample", "step", "time", "token", "seen"}))
    return false;
  const bool is_size = text.ends_with(".size(0)") || text.starts_with("len(") ||
                       text.ends_with(".numel()") || text.ends_with(".shape[0]");
  if (is_size) return false;
  if (scores(addition.value)) return true;
  const VariableNames names = behind(variables_in(addition.value), in_loop);
  return std::any_of(in_loop.begin(), in_loop.end(), [&](const Assigned& each) {
    return names.contains(each.name) && scores(each.value);
  });
}

// The items of a tuple or dictionary, else the expression.
std::vector<Ref> parts_of(Ref value) {
  const auto& tree = value.module->tree();
  const Kind kind = value.kind();
  if (kind != Kind::tuple && kind != Kind::list && kind != Kind::dictionary) return {value};
  std::vector<Ref> out;
  for (NodeId at = tree[value.node].first_child; at != kNoNode; at = tree[at].next_sibling)
    out.push_back(value.with(tree[at].kind == Kind::pair ? tree.child(at, Field::value) : at));
  return out;
}

// Follows one number from the loop to the end of its function.
class Fate {
 public:
  Fate(const Program& program, Ref body, Ref loop, VariableNames reduced, std::string name)
      : program_(program),
        body_(body),
        loop_(loop),
        reduced_(std::move(reduced)),
        names_{std::move(name)} {}

  // Its first use, where it is returned, decides, is kept or is shown by one rank.
  Ref known_as() {
    const auto& tree = body_.module->tree();
    for (const Assigned& each : assignments_in(body_)) {
      if (each.target < tree[loop_.node].last) continue;
      const bool holds = takes(each.value);
      if (!holds && meet(variables_in(each.value), reduced_)) reduced_.insert(each.name);
      if (!holds) continue;
      names_.insert(each.name);
      told_ = told_ || each.name.starts_with("self.");
    }
    for (NodeId at = tree[loop_.node].last; at < tree[body_.node].last; ++at) look_at(at);
    return told_ && !in_doubt_ ? first_ : Ref{};
  }

 private:
  // The value holds the number. Beside a reduced one or a number of ranks it may well be right.
  bool takes(Ref value) {
    bool taken = false;
    for (const Ref part : parts_of(value)) {
      const VariableNames here = variables_in(part);
      if (!meet(here, names_)) continue;
      taken = true;
      in_doubt_ = in_doubt_ || meet(here, reduced_) ||
                  says_any(part.text(), {"world", "size()", "reduce", "gather", "sync", "dist",
                                         "rank", "average", "collect", "aggregate", "ranks"});
    }
    if (taken && (!first_ || value.node < first_.node)) first_ = value;
    return taken;
  }

  void look_at(NodeId node) {
    const Ref at = body_.with(node);
    if (at.kind() == Kind::return_statement) {
      const Ref value = at.with(at.module->tree().child_at(node, 0));
      told_ = (value && takes(value)) || told_;
    } else if (at.kind() == Kind::if_statement) {
      tell(at.child(Field::condition));
    } else if (const CallRef call = program_.as_call(at)) {
      const bool shows = call.call->name == "print" || call.call->name == "info" ||
                         call.call->name == "add_scalar" || call.call->name == "write";
      if (shows && program_.guarded_by_rank(at) == diagnose::RankTest::main_only)
        tell(at.child(Field::arguments));
    }
  }

  void tell(Ref whole) {
    if (!meet(variables_in(whole), names_)) return;
    told_ = true;
    if (!first_) first_ = whole;
  }

  const Program& program_;
  Ref body_;
  Ref loop_;
  VariableNames reduced_;  // and what is made of it
  VariableNames names_;
  Ref first_;
  bool told_ = false;
  bool in_doubt_ = false;
};

}  // namespace

VariableNames variables_in(Ref expression) {
  VariableNames out;
  const auto& tree = expression.module->tree();
  for (NodeId at = expression.node; at < tree[expression.node].last; ++at) {
    const Field field = tree[at].field;
    const std::string name = variable(expression.with(at));
    if (name.empty()) continue;
    const bool is_word =
        field == Field::name || field == Field::attribute || field == Field::function;
    if (name != "self" && !is_word) out.insert(name);
    at = tree[at].last - 1;
  }
  return out;
}

ForgottenNumber forgotten_number(const Program& program, Ref loop, const VariableNames& reduced) {
  const FunctionRef function = program.enclosing_function(loop);
  if (!function || reduced.empty()) return {};
  const Ref body{function.module, function.function->body};
  const VariableNames all = behind(reduced, assignments_in(body));
  const std::vector<Assigned> additions = additions_in(loop);
  const auto partner = std::find_if(additions.begin(), additions.end(),
                                    [&](const Assigned& each) { return all.contains(each.name); });
  if (partner == additions.end()) return {};
  const std::vector<Assigned> in_loop = assignments_in(loop);
  for (const Assigned& each : additions) {
    const bool of_whole =
        each.name.ends_with("]") && all.contains(each.name.substr(0, each.name.find('[')));
    // What is reduced batch by batch is so before it is added.
    if (all.contains(each.name) || of_whole || meet(variables_in(each.value), reduced) ||
        !is_metric(each, in_loop))
      continue;
    if (const Ref use = Fate(program, body, loop, reduced, each.name).known_as())
      return {use, each.name, partner->name};
  }
  return {};
}

}  // namespace bench::pitfalls
