#include "scenarios/pitfalls/ranks/local_decisions.hpp"

#include "scenarios/pitfalls/data/loaders.hpp"
#include "scenarios/pitfalls/metrics/metric_sums.hpp"
#include "scenarios/pitfalls/program/argument_for.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/variables.hpp"
#include "scenarios/pitfalls/program/words.hpp"
#include "scenarios/pitfalls/ranks/compared_losses.hpp"
#include "scenarios/pitfalls/steps/round_data.hpp"
#include "scenarios/pitfalls/steps/round_shapes.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Field;
using diagnose::Guard;
using diagnose::Kind;
using diagnose::kNoNode;
using diagnose::NodeId;
using diagnose::RankTest;
using diagnose::Source;

namespace {

// Targets of plain assignments to the variable within the round.
std::vector<Assigned> changes_in(Ref round, const std::string& name) {
  std::vector<Assigned> out = assignments_in(round);
  std::erase_if(out, [&](const Assigned& each) { return each.name != name; });
  return out;
}

// No hand writes a loop of so many words, and every question below walks through all of it.
bool is_made_by_machine(Ref round) {
  constexpr std::uint32_t kLargest = 6000;
  const auto& tree = round.module->tree();
  return tree[round.node].last - round.node > kLargest;
}

bool is_under_main_rank(const Program& program, Ref node, Ref round) {
  const auto guards = program.guards(node);
  return std::any_of(guards.begin(), guards.end(), [&](const Guard& guard) {
    return guard.holds && round.module->tree().contains(round.node, guard.condition.node) &&
           program.rank_test(guard.condition) == RankTest::main_only;
  });
}

bool is_plain_flag(Ref value) {
  return value.kind() == Kind::true_literal || value.kind() == Kind::false_literal ||
         value.text() == "1" || value.text() == "0";
}

bool is_of_truth(Ref value) { return value.kind() == Kind::true_literal || value.text() == "1"; }

// y in `for x, y in loader`, or something that the round makes of it by methods of tensors.
bool is_of_batch(const Program& program, Ref name, Ref round, int depth = 0) {
  constexpr int kSteps = 3;
  if (name.kind() != Kind::identifier || depth > kSteps) return false;
  const auto& sources = program.sources(name);
  return !sources.empty() && std::all_of(sources.begin(), sources.end(), [&](const Source& source) {
    if (source.how == Source::How::loop_item)  // which start of range(0, n, 8) is none
      return !program.strip_iterable(source.ref).text().starts_with("range(") &&
             source.ref.module == round.module &&
             round.module->tree().contains(round.node, source.ref.node) &&
             program.innermost_loop(name) == round;
    Ref object = source.ref;
    while (object != name) {
      if (const CallRef call = program.as_call(object); call && call.receiver())
        object = call.receiver();
      else if (object.kind() == Kind::subscript || object.kind() == Kind::comparison ||
               object.kind() == Kind::binary)
        object = object.with(object.module->tree()[object.node].first_child);
      else
        break;
    }
    return object.kind() == Kind::identifier && object != name && object != source.ref &&
           is_of_batch(program, object, round, depth + 1);
  });
}

// mask.sum(), (y > 0).any(): a number that the contents of the batch decide.
bool is_reduction(const Program& program, const CallRef& call, Ref round) {
  constexpr std::string_view kReductions[] = {"sum", "any", "all", "max", "min", "mean"};
  if (!call || !call.receiver() ||
      std::find(std::begin(kReductions), std::end(kReductions), call.call->name) ==
          std::end(kReductions))
    return false;
  const auto& tree = call.module->tree();
  const NodeId receiver = call.receiver().node;
  for (NodeId id = receiver; id < tree[receiver].last; ++id)
    if (tree[id].kind == Kind::identifier && tree[id].field != Field::attribute &&
        is_of_batch(program, call.ref().with(id), round))
      return true;
  return false;
}

// batch in [x for x in batch if x], and not x.
bool is_gone_over(const diagnose::SyntaxTree& tree, NodeId name, NodeId comprehension) {
  for (NodeId at = name; at != comprehension && at != kNoNode; at = tree[at].parent)
    if (tree[at].parent != kNoNode && tree[tree[at].parent].kind == Kind::for_in_clause)
      return tree[at].field == Field::right;
  return false;
}

// if not kept, len(kept) == 0, after kept = [x for x in batch if x]: samples of this rank's batch
// that are left out.
bool is_of_filtered_batch(const Program& program, Ref condition, Ref round) {
  const auto& tree = condition.module->tree();
  for (NodeId id = condition.node; id < tree[condition.node].last; ++id) {
    if (tree[id].kind != Kind::identifier) continue;
    for (const Source& source : program.sources(condition.with(id))) {
      const Ref kept = source.ref;
      if (source.how != Source::How::value || kept.kind() != Kind::comprehension ||
          kept.module != round.module || !tree.contains(round.node, kept.node) ||
          !facts::contains(kept.text(), " if "))
        continue;
      for (NodeId name = kept.node; name < tree[kept.node].last; ++name)
        if (tree[name].kind == Kind::identifier && tree[name].field != Field::attribute &&
            is_gone_over(tree, name, kept.node) && is_of_batch(program, kept.with(name), round))
          return true;
    }
  }
  return false;
}

// len(found) == 0 and found.numel() < 2, after found = torch.where(y > 0)[0] or mask.nonzero() in
// the round: how many of the batch are chosen is this rank's own number.
bool counts_selection(const Program& program, Ref condition, Ref round) {
  const auto& tree = condition.module->tree();
  if (!holds_any(condition.text(), {"len(", ".numel()", ".size(0)", ".shape[0]", ".nelement()"}))
    return false;
  for (NodeId id = condition.node; id < tree[condition.node].last; ++id) {
    const Ref name = condition.with(id);
    if (name.kind() != Kind::identifier) continue;
    const auto& sources = program.sources(name);
    if (!sources.empty() && std::all_of(sources.begin(), sources.end(), [&](const Source& source) {
          const Ref chosen = source.ref;
          if (chosen == name || chosen.module != round.module ||
              !tree.contains(round.node, chosen.node) ||
              !holds_any(chosen.text(), {".nonzero(", "where(", ".masked_select("}))
            return false;
          for (NodeId at = chosen.node; at < tree[chosen.node].last; ++at)
            if (is_of_batch(program, chosen.with(at), round)) return true;
          return false;
        }))
      return true;
  }
  return false;
}

// Says that nothing is left: not kept, len(kept) == 0, len(kept) < 2.
bool asks_whether_any(Ref condition) {
  if (condition.kind() == Kind::not_expression)
    return condition.child(Field::argument).kind() == Kind::identifier;
  return condition.kind() == Kind::comparison && condition.text().starts_with("len(");
}

// batch is None, of a loader whose collate_fn may have dropped all samples of it.
bool is_dropped_batch(const Program& program, Ref condition, Ref round) {
  const auto& tree = condition.module->tree();
  if (condition.kind() != Kind::comparison || tree.child_count(condition.node) != 2 ||
      tree[condition.node].op != diagnose::Op::is || round.kind() != Kind::for_statement ||
      tree[tree.child_at(condition.node, 1)].kind != Kind::none_literal ||
      !is_of_batch(program, condition.with(tree.child_at(condition.node, 0)), round))
    return false;
  const auto loaders = loaders_of(program, round.child(Field::right));
  return std::any_of(loaders.begin(), loaders.end(), [&](const CallRef& loader) {
    const Ref collate = loader.keyword("collate_fn");
    if (!collate) return false;
    // One that is in sight says None where it gives it.
    const auto& sources = program.sources(collate);
    return std::none_of(sources.begin(), sources.end(), [](const Source& source) {
      return source.ref.kind() == Kind::function && !facts::contains(source.ref.text(), "None");
    });
  });
}

bool is_builtin_of_numbers(std::string_view name) {
  for (const std::string_view each : {"float", "int", "len", "sum", "min", "max", "mean", "item",
                                      "round", "abs", "average", "array", "range", "enumerate"})
    if (name == each) return true;
  return false;
}

// stop = agree(stop), votes.add_(stop): a call out of sight may have told the ranks of the
// variable, or the condition asks one.
bool may_be_agreed(const Program& program, std::string_view name, Ref condition, Ref round) {
  const auto calls = facts::calls_in(round);
  return std::any_of(calls.begin(), calls.end(), [&](const CallRef& call) {
    if (call.call->node > condition.module->tree()[condition.node].last ||
        is_builtin_of_numbers(call.call->name) || call.call->name == "print" ||
        call.call->name == "str" || call.call->name == "format" || call.call->name == "save")
      return false;
    const auto given = facts::arguments_of(call);
    return std::any_of(given.begin(), given.end(), [&](Ref value) {
      return value.text() == name && !is_under_main_rank(program, call.ref(), round);
    });
  });
}

}  // namespace

bool depends_on_local_data(std::string_view condition) {
  const std::string text = facts::lowered(condition);
  for (const std::string_view word : {"isnan", "isfinite", "isinf", "is_nan"})
    if (facts::contains(text, word)) return true;
  return false;
}

// mask.sum() == 0, after mask = ~torch.isnan(batch), found in the same round.
bool reads_local_data(const Program& program, Ref condition, Ref round) {
  const auto& tree = condition.module->tree();
  for (NodeId id = condition.node; id < tree[condition.node].last; ++id) {
    if (tree[id].kind != Kind::identifier) continue;
    for (const diagnose::Source& source : program.sources(condition.with(id)))
      if (source.how == diagnose::Source::How::value && source.ref.module == round.module &&
          tree.contains(round.node, source.ref.node) && depends_on_local_data(source.ref.text()))
        return true;
  }
  return false;
}

namespace {

// EarlyStopping(patience=5), and a name that such an object was given.
bool is_early_stopper(const Program& program, Ref object) {
  if (!diagnose::stands_for_object(object)) return false;
  const auto& sources = program.sources(object);
  return std::any_of(sources.begin(), sources.end(), [&](const Source& source) {
    const CallRef made = program.as_call(source.ref);
    return made && says_any(made.call->name, {"earlystop", "early_stop", "stopper"});
  });
}

// es.stop, es.step(loss) and es(loss) of an object that stops early.
bool asks_early_stopper(const Program& program, Ref answer) {
  if (answer.kind() == Kind::not_expression) answer = answer.child(Field::argument);
  if (answer.kind() == Kind::attribute)
    return is_early_stopper(program, answer.child(Field::object));
  const CallRef call = program.as_call(answer);
  if (!call) return false;
  const Ref function = answer.child(Field::function);
  return is_early_stopper(program, call.receiver() ? call.receiver() : function);
}

// validate(model, DataLoader(data)), without a sampler or anything that deals the data out: equal
// models see the same batches on every rank.
bool goes_over_all_data(const Program& program, const CallRef& evaluation) {
  if (program.framework_distributes()) return false;
  bool is_seen = false;
  for (const Ref given : facts::arguments_of(evaluation))
    for (const CallRef& loader : loaders_of(program, given)) {
      if (has_some_sampler(program, loader)) return false;
      is_seen = true;
    }
  return is_seen;
}

// accuracy after accuracy = validate(model, loader), or one of several things that it gives back.
bool is_found_by_evaluation(const Program& program, Ref figure) {
  if (figure.kind() != Kind::identifier ||
      !says_any(figure.text(), {"loss", "acc", "score", "metric", "f1", "ppl", "val", "iou", "auc",
                                "bleu", "dice", "psnr", "err", "top1", "prec", "perplex"}))
    return false;
  for (const std::uint32_t index : figure.module->defs_of(figure.text(), false)) {
    const diagnose::Def& def = figure.module->defs()[index];
    const CallRef made = def.kind == diagnose::DefKind::assign && def.value != kNoNode
                             ? program.as_call(figure.with(def.value))
                             : CallRef{};
    if (made && made.module->function_of(def.target) == figure.module->function_of(figure.node) &&
        says_any(made.call->name, {"eval", "val", "test"}) && !goes_over_all_data(program, made))
      return true;
  }
  return false;
}

// if accuracy >= 0.99: break, or a target that is set elsewhere.
bool reaches_a_target(const Program& program, Ref condition) {
  const auto& tree = condition.module->tree();
  if (condition.kind() != Kind::comparison || tree.child_count(condition.node) != 2) return false;
  const Ref target = condition.with(tree.child_at(condition.node, 1));
  const bool is_set = target.kind() == Kind::floating || target.kind() == Kind::integer ||
                      says_any(target.text(), {"target", "thresh", "goal", "args.", "config."});
  return is_set &&
         is_found_by_evaluation(program, condition.with(tree.child_at(condition.node, 0)));
}

}  // namespace

bool stops_early(const Program& program, Ref condition) {
  if (reaches_a_target(program, condition)) return true;
  if (says_any(condition.text(),
               {"early_stop", "earlystop", "patience", "should_stop", "no_improve"}))
    return true;
  if (condition.kind() == Kind::identifier) {
    const auto& sources = program.sources(condition);
    return std::any_of(sources.begin(), sources.end(), [&](const Source& source) {
      return source.how == Source::How::value && asks_early_stopper(program, source.ref);
    });
  }
  return asks_early_stopper(program, condition);
}

// bad > 20, where bad counts the rounds in which a loss or a score was no better, and starts anew
// with one that was: if loss < best: bad = 0 else: bad += 1.
bool counts_bad_rounds(const Program& program, Ref condition, Ref round) {
  const auto& module = *condition.module;
  const auto& tree = module.tree();
  if (condition.kind() != Kind::comparison || tree.child_count(condition.node) != 2) return false;
  const Ref counter = condition.with(tree.child_at(condition.node, 0));
  if (!is_variable(counter)) return false;
  bool starts_anew = false;
  bool counts = false;
  for (const diagnose::Def* each : values_of(program, counter)) {
    const auto& def = *each;
    if (def.value == kNoNode || !tree.contains(round.node, def.target)) continue;
    const auto guards = program.guards(condition.with(def.target));
    const bool on_metric = std::any_of(guards.begin(), guards.end(), [&](const Guard& guard) {
      return guard.condition.kind() == Kind::comparison &&
             tree.contains(round.node, guard.condition.node) &&
             says_any(guard.condition.text(), {"loss", "acc", "score", "metric", "best"});
    });
    const auto value = program.integer({&module, def.value});
    starts_anew = starts_anew || (on_metric && def.kind == diagnose::DefKind::assign && value == 0);
    counts = counts || (on_metric && def.kind == diagnose::DefKind::augmented && value == 1);
  }
  return starts_anew && counts;
}

std::vector<Ref> decisions_behind(const Program& program, Ref condition, Ref round) {
  std::vector<Ref> out{condition};
  if (is_made_by_machine(round)) return out;
  if (condition.kind() != Kind::identifier && condition.kind() != Kind::attribute) return out;
  const auto changes = changes_in(round, std::string(condition.text()));
  // stop = agree(stop)
  if (std::any_of(changes.begin(), changes.end(),
                  [](const Assigned& change) { return !is_plain_flag(change.value); }) ||
      may_be_agreed(program, condition.text(), condition, round))
    return out;
  for (const Assigned& change : changes) {
    if (!is_of_truth(change.value) || facts::only_without_distribution(program, change.value))
      continue;
    for (const Guard& guard : program.guards(change.value))
      if (guard.holds && round.module->tree().contains(round.node, guard.condition.node))
        out.push_back(guard.condition);
  }
  return out;
}

namespace {

// if loss < best and rank == 0: bad = 0, else: bad += 1: the arms part the ranks.
bool is_changed_apart(const Program& program, const std::vector<Assigned>& changes, Ref condition,
                      Ref round) {
  const auto guards_of = [&](const Assigned& change) {
    return program.guards(condition.with(change.target));
  };
  for (const Assigned& one : changes)
    for (const Guard& guard : guards_of(one)) {
      if (!guard.holds || !round.module->tree().contains(round.node, guard.condition.node) ||
          program.rank_test(guard.condition) != RankTest::main_only)
        continue;
      for (const Assigned& other : changes)
        for (const Guard& each : guards_of(other))
          if (!each.holds && each.condition == guard.condition &&
              other.value.text() != one.value.text())
            return true;
    }
  return false;
}

}  // namespace

bool is_kept_by_one_rank(const Program& program, Ref condition, Ref round) {
  if (is_made_by_machine(round) || program.rank_test(condition) != RankTest::none) return false;
  const auto asked = facts::calls_in(condition);
  if (std::any_of(asked.begin(), asked.end(),
                  [](const CallRef& call) { return !is_builtin_of_numbers(call.call->name); }))
    return false;
  const auto names = variables_in(condition);
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    const auto changes = changes_in(round, name);
    if (changes.empty() || may_be_agreed(program, name, condition, round)) return false;
    return is_changed_apart(program, changes, condition, round) ||
           std::all_of(changes.begin(), changes.end(), [&](const Assigned& change) {
             return is_under_main_rank(program, condition.with(change.target), round);
           });
  });
}

bool counts_on_one_rank(const Program& program, Ref condition) {
  const auto& tree = condition.module->tree();
  for (NodeId id = condition.node; id < tree[condition.node].last; ++id) {
    const Ref count = condition.with(id);
    if (count.kind() != Kind::attribute || count.child(Field::attribute).text() != "n") continue;
    for (const Source& source : program.sources(count.child(Field::object))) {
      const CallRef bar = program.as_call(source.ref);
      if (bar && bar.call->name.starts_with("tqdm") && bar.keyword("disable") &&
          program.rank_test(bar.keyword("disable")) == RankTest::not_main)
        return true;
    }
  }
  return false;
}

bool reads_own_batch(const Program& program, Ref condition, Ref round) {
  if (is_made_by_machine(round)) return false;
  if (compares_loss(program, condition) || compares_sum_of_losses(program, condition, round))
    return true;
  if (asks_whether_any(condition) && is_of_filtered_batch(program, condition, round)) return true;
  if (is_dropped_batch(program, condition, round) || counts_selection(program, condition, round) ||
      asks_what_is_left(program, condition, round) || asks_for_shape(program, condition, round))
    return true;
  const auto calls = facts::calls_in(condition);
  return std::any_of(calls.begin(), calls.end(),
                     [&](const CallRef& call) { return is_reduction(program, call, round); });
}

bool is_beside_training(const Program& program, const CallRef& training, Ref condition, Ref round) {
  if (is_made_by_machine(round) || !program.callee(training)) return false;
  const auto assigned = assignments_in(round);
  VariableNames names = variables_in(condition);
  // stopper(val_loss), above stopper.early_stop
  for (const CallRef& call : facts::calls_in(round)) {
    Ref object{call.module, call.call->function};
    if (const Ref receiver = call.receiver()) object = receiver;
    const bool steers = std::any_of(names.begin(), names.end(), [&](const std::string& name) {
      return name == object.text() || name.starts_with(std::string(object.text()) + ".");
    });
    if (!steers) continue;
    const auto given = variables_in(call.ref().child(Field::arguments));
    names.insert(given.begin(), given.end());
  }
  names = behind(names, assigned);
  bool is_computed = false;
  for (const Assigned& each : assigned) {
    if (!names.contains(each.name)) continue;
    for (const CallRef& call : facts::calls_in(each.value)) {
      if (call.call == training.call) return false;
      const bool known = program.callee(call) || is_builtin_of_numbers(call.call->name);
      if (!known) return false;
      is_computed = is_computed || static_cast<bool>(program.callee(call));
    }
  }
  return is_computed;
}

}  // namespace bench::pitfalls
