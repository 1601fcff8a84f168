#include "scenarios/pitfalls/steps/round_data.hpp"

#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>

namespace bench::pitfalls {

using diagnose::Field;
using diagnose::Kind;
using diagnose::kNoNode;
using diagnose::NodeId;
using diagnose::Op;

namespace {

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// The names of a round and what they are made of.
struct Round {
  const Program& program;
  Ref loop;
  std::vector<Assigned> assigned;
  VariableNames own;     // what the loader gives, and whatever is made of it
  VariableNames shares;  // of which the round takes a part

  bool is_made_of_batch(Ref value) const { return meet(with_wholes(variables_in(value)), own); }

  // Indices up to the length of a share are alike on all ranks.
  bool takes_more_than_length(Ref value) const {
    std::string text(value.text());
    for (const std::string& share : shares)
      for (std::size_t at; (at = text.find("len(" + share + ")")) != std::string::npos;)
        text.erase(at, share.size() + 5);
    const VariableNames names = with_wholes(variables_in(value));
    return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
      return own.contains(name) && (!shares.contains(name) || facts::contains(text, name));
    });
  }
};

// The n-th name of i, (x, y); empty where there is none.
Ref part_of(Ref target, std::size_t index) {
  if (target.kind() != Kind::tuple) return {};
  const NodeId part = target.module->tree().child_at(target.node, index);
  return part == kNoNode ? Ref{} : target.with(part);
}

void erase_all(VariableNames& names, Ref target) {
  if (!target) return;
  for (const std::string& each : variables_in(target)) names.erase(each);
}

constexpr int kMaxDepth = 6;

// Takes out counts of rounds, which are alike on all ranks: i in for i, batch in enumerate(loader)
// and in for i, batch in zip(range(n), loader).
void drop_counts(const Program& program, Ref target, Ref items, VariableNames& names, int depth) {
  if (!target || !items || depth > kMaxDepth) return;
  const CallRef call = program.as_call(items);
  if (!call) {
    if (!diagnose::stands_for_object(items)) return;
    for (const diagnose::Source& source : program.sources(items))
      if (program.as_call(source.ref)) drop_counts(program, target, source.ref, names, depth + 1);
    return;
  }
  const std::string_view name = call.call->name;
  if (is_one_of(name, {"range", "trange", "arange", "count"})) return erase_all(names, target);
  if (name == "enumerate") {
    erase_all(names, part_of(target, 0));
    drop_counts(program, part_of(target, 1), call.positional(0), names, depth + 1);
  } else if (name == "zip") {
    for (std::size_t i = 0; part_of(target, i); ++i)
      drop_counts(program, part_of(target, i), call.positional(i), names, depth + 1);
  } else if (says_any(name, {"tqdm", "list", "iter", "track", "prog", "bar", "log_every"})) {
    drop_counts(program, target, call.positional(0), names, depth + 1);
  }
}

// What the loop takes from the loader.
VariableNames given_by(const Program& program, Ref loop) {
  if (loop.kind() != Kind::for_statement) return {};
  const Ref target = loop.child(Field::left);
  VariableNames out = variables_in(target);
  drop_counts(program, target, loop.child(Field::right), out, 0);
  return out;
}

// items[rank::world], items[start:end] where the start comes from the rank, np.array_split(items,
// world)[rank], data.shard(world, rank): each rank has items of its own.
bool deals_out(const Program& program, Ref value) {
  if (value.kind() == Kind::subscript) {
    const Ref part = value.child(Field::subscript);
    return part && part.kind() != Kind::string && program.comes_from_rank(part);
  }
  const CallRef call = program.as_call(value);
  if (call && is_one_of(call.call->name, {"list", "sorted", "tuple"}) && call.positional(0))
    return deals_out(program, call.positional(0));
  if (call && call.call->name == "tolist" && call.receiver())
    return deals_out(program, call.receiver());
  return call && is_one_of(call.call->name, {"shard", "split_dataset_by_node"}) &&
         program.comes_from_rank(value.child(Field::arguments));
}

// mine of mine[i : i + n] in for i in range(0, len(mine), n), where mine is such a share.
VariableNames shares_in(const Program& program, Ref value) {
  VariableNames out;
  const auto& tree = value.module->tree();
  for (NodeId at = value.node; at < tree[value.node].last; ++at) {
    if (tree[at].kind != Kind::subscript) continue;
    const Ref share = value.with(tree.child(at, Field::value));
    if (!diagnose::stands_for_object(share)) continue;
    const auto& sources = program.sources(share);
    if (std::any_of(sources.begin(), sources.end(), [&](const diagnose::Source& source) {
          return source.how == diagnose::Source::How::value && deals_out(program, source.ref);
        }))
      out.merge(variables_in(share));
  }
  return out;
}

Round round_of(const Program& program, Ref loop) {
  Round out{program, loop, assignments_in(loop), given_by(program, loop)};
  const bool counts = out.own.empty();
  for (const Assigned& each : out.assigned) {  // batch = next(batches)
    const CallRef call = program.as_call(each.value);
    if (call && call.call->name == "next") out.own.insert(each.name);
    if (counts && each.value) out.shares.merge(shares_in(program, each.value));
  }
  out.own.insert(out.shares.begin(), out.shares.end());
  for (bool grown = !out.own.empty(); grown;) {
    grown = false;
    for (const Assigned& each : out.assigned)
      if (each.target > loop.child(Field::body).node && each.value &&
          out.takes_more_than_length(each.value))
        grown = out.own.insert(each.name).second || grown;
  }
  return out;
}

// Gives as many things as it is given, whatever they are.
bool keeps_the_number(std::string_view name) {
  return is_one_of(
      name, {"to",          "cuda",       "cpu",        "float",          "long",      "int",
             "half",        "bool",       "view",       "reshape",        "permute",   "transpose",
             "detach",      "contiguous", "clone",      "squeeze",        "unsqueeze", "flatten",
             "numpy",       "tolist",     "get",        "items",          "keys",      "values",
             "next",        "iter",       "list",       "tuple",          "zip",       "range",
             "enumerate",   "cat",        "stack",      "tensor",         "as_tensor", "from_numpy",
             "FloatTensor", "LongTensor", "Variable",   "requires_grad_", "pop",       "dict",
             "type",        "type_as",    "expand",     "repeat",         "chunk",     "split",
             "size",        "len",        "isinstance", "getattr",        "hasattr",   "copy",
             "deepcopy",    "sorted"});
}

// A function of the program: def weights_of(batch): return batch.get("weights")
bool gives_what_it_is_given(const Program& program, const CallRef& call) {
  const auto function = program.callee(call);
  if (!function || function.function->returns.empty()) return false;
  const auto& returns = function.function->returns;
  return std::all_of(returns.begin(), returns.end(), [&](const NodeId value) {
    const CallRef given = program.as_call({function.module, value});
    return given && keeps_the_number(given.call->name);
  });
}

// find_hard(x), get_valid(batch): by its name, it gives some of what it is given. What other
// functions make of a batch, however they change it, has as many samples.
bool chooses(const CallRef& call) {
  const std::string_view name = call.call->name;
  if (name == "where") return !call.positional(2);
  return says_any(name, {"find", "filter", "select", "valid", "nonzero", "non_zero", "unique",
                         "match", "positive", "negative", "triplet", "pairs", "mining"}) ||
         (says_any(name, {"hard"}) && !says_any(name, {"shard", "hardt", "hards", "hard_s"}));
}

bool reduces(std::string_view name) {
  return is_one_of(name, {"sum", "any", "all", "max", "min", "mean", "count_nonzero"});
}

// mask.sum(), (y > 0).any(), torch.any(mask): a number that the contents of the batch decide.
bool is_number_of_contents(const Round& round, const CallRef& call) {
  if (!reduces(call.call->name)) return false;
  const std::string_view path = call.call->path;
  const Ref of = path.empty() ? call.receiver() : call.positional(0);
  return of && round.is_made_of_batch(of);
}

// labels[valid], of an index that the batch decides.
bool picks(const Round& round, Ref value) {
  if (value.kind() != Kind::subscript) return false;
  const Ref index = value.child(Field::subscript);
  return index && index.kind() != Kind::string && index.kind() != Kind::slice &&
         index.kind() != Kind::tuple && round.is_made_of_batch(index);
}

// Whether the question is for none at all. What is made of a batch of one sample may be one thing,
// too, and the last batch is of that size on all ranks.
enum class Asked : std::uint8_t { for_none, for_few };

// The value is a choice among what the batch holds: what a helper finds in it, those of a mask,
// those that a condition keeps.
bool is_selection(const Round& round, Ref value, Asked asked) {
  if (picks(round, value)) return true;
  if (value.kind() == Kind::comprehension)
    return facts::contains(value.text(), " if ") && round.is_made_of_batch(value);
  const CallRef call = round.program.as_call(value);
  if (!call) return false;
  if (keeps_the_number(call.call->name))
    return call.receiver() && is_selection(round, call.receiver(), asked);
  if (asked == Asked::for_few || !chooses(call) || gives_what_it_is_given(round.program, call))
    return false;
  const Ref arguments = call.ref().child(Field::arguments);
  return (arguments && round.is_made_of_batch(arguments)) ||
         (call.receiver() && round.is_made_of_batch(call.receiver()));
}

// kept.append(x) under a test of x.
bool is_kept_by_choice(const Round& round, const Assigned& each) {
  if (round.program.as_call(round.loop.with(each.target)).call == nullptr) return false;
  const auto guards = round.program.guards(round.loop.with(each.target));
  return std::any_of(guards.begin(), guards.end(), [&](const diagnose::Guard& guard) {
    return round.loop.module->tree().contains(round.loop.node, guard.condition.node) &&
           round.is_made_of_batch(guard.condition);
  });
}

bool names_a_selection(const Round& round, Ref name, Asked asked) {
  if (!name || name.module != round.loop.module) return false;
  if (name.kind() != Kind::identifier) return is_selection(round, name, asked);
  return std::any_of(round.assigned.begin(), round.assigned.end(), [&](const Assigned& each) {
    return each.name == name.text() && each.target < name.node && each.value &&
           (is_selection(round, each.value, asked) || is_kept_by_choice(round, each));
  });
}

bool names_a_number(const Round& round, Ref name, Asked asked) {
  if (name.kind() != Kind::identifier) return false;
  return std::any_of(round.assigned.begin(), round.assigned.end(), [&](const Assigned& each) {
    if (each.name != name.text() || each.target > name.node || !each.value) return false;
    const auto calls = facts::calls_in(each.value);
    return std::any_of(calls.begin(), calls.end(), [&](const CallRef& call) {
      return is_number_of_contents(round, call) ||
             (call.call->name == "len" && names_a_selection(round, call.positional(0), asked));
    });
  });
}

// found in len(found), found.numel(), found.size(0) and found.shape[0]; empty for what is no count.
Ref counted(const Program& program, Ref count) {
  if (count.kind() == Kind::subscript) {
    const Ref shape = count.child(Field::value);
    return shape.kind() == Kind::attribute && shape.child(Field::attribute).text() == "shape"
               ? shape.child(Field::object)
               : Ref{};
  }
  const CallRef call = program.as_call(count);
  if (!call) return {};
  if (call.call->name == "len") return call.positional(0);
  return is_one_of(call.call->name, {"numel", "nelement", "size"}) ? call.receiver() : Ref{};
}

// `== 0`, `< 1` and `<= 0` ask for none, other small numbers for too few to go on with.
std::optional<Asked> asked_by(const Program& program, Op op, Ref bound) {
  const auto number = program.integer(bound);
  if (!number || *number < 0 || *number > 2) return std::nullopt;
  return *number == 0 || (*number == 1 && op == Op::less) ? Asked::for_none : Asked::for_few;
}

bool asks_for_any(const Round& round, Ref part) {
  const Program& program = round.program;
  const auto& tree = part.module->tree();
  if (const CallRef call = program.as_call(part)) return is_number_of_contents(round, call);
  if (part.kind() == Kind::not_expression) {
    const Ref of = part.child(Field::argument);
    const Ref all = counted(program, of);
    return names_a_selection(round, all ? all : of, Asked::for_none);
  }
  if (part.kind() != Kind::comparison || tree.child_count(part.node) != 2) return false;
  const Ref left = part.with(tree.child_at(part.node, 0));
  const Ref right = part.with(tree.child_at(part.node, 1));
  if (tree[part.node].op == Op::is && right.kind() == Kind::none_literal)
    return names_a_selection(round, left, Asked::for_none);
  const auto asked = asked_by(program, tree[part.node].op, right);
  if (!asked) return false;
  const Ref all = counted(program, left);
  return all ? names_a_selection(round, all, *asked) : names_a_number(round, left, *asked);
}

}  // namespace

VariableNames names_of_batch(const Program& program, Ref round) {
  return round_of(program, round).own;
}

bool asks_what_is_left(const Program& program, Ref condition, Ref loop) {
  if (condition.module != loop.module) return false;
  const auto& tree = condition.module->tree();
  if (!tree.contains(loop.node, condition.node)) return false;
  const Round round = round_of(program, loop);
  if (round.own.empty()) return false;
  for (NodeId at = condition.node; at < tree[condition.node].last; ++at)
    if (asks_for_any(round, condition.with(at))) return true;
  return false;
}

}  // namespace bench::pitfalls
