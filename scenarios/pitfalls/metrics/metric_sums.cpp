#include "scenarios/pitfalls/metrics/metric_sums.hpp"

#include "scenarios/pitfalls/metrics/plain_meters.hpp"
#include "scenarios/pitfalls/metrics/running_sums.hpp"
#include "scenarios/pitfalls/metrics/step_sums.hpp"
#include "scenarios/pitfalls/metrics/torchmetrics.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Def;
using diagnose::DefKind;
using diagnose::Field;
using diagnose::Kind;
using diagnose::kNoNode;
using diagnose::Module;
using diagnose::NodeId;

namespace {

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

// [dist.all_reduce(each) for each in (losses, hits)]: a loop in other words.
bool reduces_within(Ref comprehension) {
  const auto calls = facts::calls_in(comprehension);
  return std::any_of(calls.begin(), calls.end(), [](const CallRef& call) {
    return says_any(call.call->name, {"reduce", "gather", "sync"});
  });
}

// The value is what a comprehension goes over, of which nothing outside has the parts.
bool is_gone_over_within(Ref value) {
  const auto& tree = value.module->tree();
  const NodeId clause = tree[value.node].parent;
  return clause != kNoNode && tree[clause].kind == Kind::for_in_clause &&
         !reduces_within(value.with(tree[clause].parent));
}

// each in [each.avg for each in meters]: a name inside the comprehension alone, and what it goes
// over stands there as well.
bool is_of_comprehension(Ref whole, NodeId name) {
  const auto& tree = whole.module->tree();
  const std::string_view text = tree.text(name);
  for (NodeId at = name; at != whole.node && at != kNoNode;) {
    at = tree[at].parent;
    if (at == kNoNode || tree[at].kind != Kind::comprehension || reduces_within(whole.with(at)))
      continue;
    for (NodeId part = tree[at].first_child; part != kNoNode; part = tree[part].next_sibling) {
      if (tree[part].kind != Kind::for_in_clause) continue;
      const NodeId target = tree.child(part, Field::left);
      for (NodeId id = target; target != kNoNode && id < tree[target].last; ++id)
        if (tree[id].kind == Kind::identifier && tree.text(id) == text) return true;
    }
  }
  return false;
}

// mdl(x) of a file that says mdl.eval(): a model, whatever its name.
bool has_mode(Ref object) {
  const Module& module = *object.module;
  if (!is_plain(object)) return false;
  for (const std::uint32_t index : module.calls_of(diagnose::HashedName("eval"))) {
    const CallRef call{&module, &module.calls()[index]};
    if (call.receiver() && !call.positional(0) && call.receiver().text() == object.text())
      return true;
  }
  return false;
}

// A loss, a score or what the model says: counts and times are no metric.
bool scores(Ref value) {
  for (const CallRef& call : facts::calls_in(value)) {
    const Ref called = value.with(call.call->function);
    if (says_any(called.text(), {"model", "net", "criter", "loss", "entropy", "acc", "metric",
                                 "score", "mse", "infer", "predict"}) ||
        has_mode(called))
      return true;
  }
  return false;
}

// Rounds, samples and seconds.
bool counts(std::string_view name) {
  return name == "n" || name == "i" || name == "total" ||
         says_any(name, {"count", "num", "cnt", "sample", "step", "time", "token", "seen"});
}

// x.size(0) or len(x) alone; loss.item() * x.size(0) is a loss.
bool is_size(std::string_view text) {
  if (facts::contains(text, " * ")) return false;
  return text.ends_with(".size(0)") || text.starts_with("len(") || text.ends_with(".numel()") ||
         text.ends_with(".shape[0]");
}

// batch.scores of for batch in loader, and page.masks after page = Page() in the round.
bool starts_with_its_object(const Program& program, Ref object, Ref loop) {
  while (object.kind() == Kind::attribute) object = object.child(Field::object);
  if (object.kind() != Kind::identifier) return false;
  const auto& sources = program.sources(object);
  return std::any_of(sources.begin(), sources.end(), [&](const diagnose::Source& source) {
    return source.ref != object && source.ref.module == loop.module &&
           loop.module->tree().contains(loop.node, source.ref.node);
  });
}

// A list that starts anew in every round holds nothing across batches; a list in a dictionary does
// where the dictionary does.
bool starts_anew(const Program& program, Ref object, Ref loop, int depth = 0) {
  constexpr int kContainers = 2;  // a meter of a list of a dictionary
  if (object.kind() == Kind::subscript) object = object.child(Field::value);
  const auto& sources = program.sources(object);
  return std::any_of(sources.begin(), sources.end(), [&](const diagnose::Source& source) {
    // for meter in meters.values(): one of those that the round has found there.
    if (source.how == diagnose::Source::How::loop_item) {
      const CallRef items = program.as_call(source.ref);
      const Ref whole = items && items.receiver() ? items.receiver() : source.ref;
      if (whole.kind() == Kind::identifier && whole.text() != object.text() && depth < kContainers)
        return starts_anew(program, whole, loop, depth + 1);
    }
    // log.meters, to which nothing here gives a value, is as new as log is.
    if (source.ref == object) return starts_with_its_object(program, object, loop);
    return source.ref.module == loop.module &&
           loop.module->tree().contains(loop.node, source.ref.node);
  });
}

// preds = [] further up in the round: so does what `preds += [...]` adds to, and canvas[:, a:b] of
// `canvas = torch.zeros(...)`.
bool is_set_before(Ref loop, NodeId addition, Ref target) {
  while (target.kind() == Kind::subscript) target = target.child(Field::value);
  const std::string_view name = target.text();
  const Module& module = *loop.module;
  const auto& set = module.nodes_of(Kind::assignment);
  return std::any_of(set.begin(), set.end(), [&](const NodeId node) {
    return node < addition && module.tree().contains(loop.node, node) &&
           loop.with(node).child(Field::left).text() == name;
  });
}

// All that the loop adds to, in source order; `name` may be any expression.
std::vector<Assigned> sums_of(const Program& program, Ref loop) {
  std::vector<Assigned> out;
  const Module& module = *loop.module;
  for (const NodeId node : module.nodes_of(Kind::augmented_assignment))
    if (module.tree().contains(loop.node, node)) {
      const Ref at = loop.with(node);
      if (is_set_before(loop, node, at.child(Field::left))) continue;
      out.push_back({std::string(at.child(Field::left).text()), node, at.child(Field::right)});
    }
  for (const CallRef& call : facts::calls_in(loop)) {
    if (!call.receiver() || starts_anew(program, call.receiver(), loop) ||
        reduces_by_itself(program, call.receiver()) ||
        (call.call->name == "update" && call.positional(0).kind() == Kind::integer))  // of a bar
      continue;
    if (call.call->name == "append" || call.call->name == "extend" || call.call->name == "update")
      out.push_back({std::string(call.receiver().text()), call.call->node, call.positional(0)});
    if (call.call->name == "add_batch")  // of a metric of evaluate or datasets
      out.push_back(
          {std::string(call.receiver().text()), call.call->node, call.argument(0, "predictions")});
  }
  std::sort(out.begin(), out.end(),
            [](const Assigned& a, const Assigned& b) { return a.target < b.target; });
  return out;
}

// meter.add(loss): of what its name says is there to add up, neither a set nor a progress bar.
bool may_add(std::string_view object, std::string_view method) {
  return (method == "add" || method == "process" || method == "accumulate" ||
          method == "addBatch" || method == "record") &&
         says_any(object, {"meter", "metric", "eval", "score", "conf", "loss", "acc", "top", "iou",
                           "map", "stat", "avg", "mean"});
}

// Ways to add up that mean something else where what is added is no metric.
std::vector<Assigned> perhaps_sums_of(const Program& program, Ref loop) {
  std::vector<Assigned> out = self_sums_in(program, loop);
  const std::vector<Assigned> stored = stored_items_in(program, loop);
  out.insert(out.end(), stored.begin(), stored.end());
  for (const CallRef& call : facts::calls_in(loop)) {
    const Ref object = call.receiver();
    if (object && is_plain(object) && may_add(object.text(), call.call->name) &&
        call.positional(0) && !starts_anew(program, object, loop) && adds_up_alone(program, object))
      out.push_back(
          {std::string(object.text()), call.call->node, call.ref().child(Field::arguments)});
  }
  return out;
}

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
    if (name != "self" && !is_word &&
        !is_of_comprehension(expression,
                             tree[at].kind == Kind::subscript ? tree.child(at, Field::value) : at))
      out.insert(name);
    at = tree[at].last - 1;
  }
  return out;
}

bool meet(const VariableNames& a, const VariableNames& b) {
  return std::any_of(a.begin(), a.end(), [&](const std::string& name) { return b.contains(name); });
}

std::vector<Assigned> additions_in(Ref subtree) {
  std::vector<Assigned> out;
  const Module& module = *subtree.module;
  const auto& additions = module.nodes_of(Kind::augmented_assignment);
  const NodeId last = module.tree()[subtree.node].last;
  for (auto each = std::lower_bound(additions.begin(), additions.end(), subtree.node);
       each != additions.end() && *each < last; ++each) {
    const Ref at = subtree.with(*each);
    const Ref left = at.child(Field::left);
    if (facts::contains(at.text(), "+="))
      out.push_back({variable(left), left.node, at.child(Field::right)});
  }
  for (const CallRef& call : facts::calls_in(subtree))
    if ((call.call->name == "append" || call.call->name == "extend") && call.receiver() &&
        call.positional(0))
      out.push_back({variable(call.receiver()), call.call->node, call.positional(0)});
  std::erase_if(out, [](const Assigned& each) { return each.name.empty(); });
  return out;
}

Ref body_around(const Program& program, Ref node) {
  const diagnose::FunctionRef function = program.enclosing_function(node);
  return {node.module, function ? function.function->body : 0};
}

std::vector<Assigned> assignments_in(Ref subtree) {
  std::vector<Assigned> out = additions_in(subtree);
  const Module& module = *subtree.module;
  const NodeId last = module.tree()[subtree.node].last;
  auto at = std::lower_bound(module.defs().begin(), module.defs().end(), subtree.node,
                             [](const Def& def, NodeId node) { return def.target < node; });
  for (; at != module.defs().end() && at->target < last; ++at) {
    const Def& def = *at;
    if ((def.kind != DefKind::assign && def.kind != DefKind::loop) || def.value == kNoNode ||
        is_gone_over_within(subtree.with(def.value)))
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

VariableNames with_wholes(VariableNames names) {
  VariableNames wholes;
  for (const std::string& name : names)
    if (name.ends_with("]")) wholes.insert(name.substr(0, name.find('[')));
  names.merge(wholes);
  return names;
}

bool is_metric(const Assigned& addition, const std::vector<Assigned>& in_loop) {
  // total += criterion(model(x), y).item() is no count.
  const bool is_scored = scores(addition.value);
  if ((counts(addition.name) && !(is_scored && addition.name == "total")) ||
      is_size(addition.value.text()))
    return false;
  if (is_scored) return true;
  const VariableNames names = behind(with_wholes(variables_in(addition.value)), in_loop);
  return std::any_of(in_loop.begin(), in_loop.end(), [&](const Assigned& each) {
    return names.contains(each.name) && scores(each.value);
  });
}

namespace {

// x for x.cuda(), x.to(device, non_blocking=True), x.detach().cpu().
Ref moved(const Program& program, Ref value) {
  constexpr int kMoves = 4;
  for (int depth = 0; depth < kMoves; ++depth) {
    const CallRef call = program.as_call(value);
    if (!call || !call.receiver()) break;
    const std::string_view name = call.call->name;
    if (name != "cuda" && name != "to" && name != "cpu" && name != "detach" && name != "clone" &&
        name != "float" && name != "half" && name != "long" && name != "numpy")
      break;
    value = call.receiver();
  }
  return value;
}

// for x, y in loader: kept.append(x.cuda()): the batches themselves, kept for later. A metric's
// update(y, model(x)) compares them with something.
bool keeps_a_batch(const Program& program, Ref loop, const Assigned& addition) {
  if (!addition.value) return false;
  if (const CallRef call = program.as_call(loop.with(addition.target)))
    if (call.positional(1) || call.call->name == "add_batch") return false;
  const Ref kept = moved(program, addition.value);
  const Ref targets = loop.child(Field::left);
  return kept.kind() == Kind::identifier && targets &&
         variables_in(targets).contains(std::string(kept.text()));
}

// cached_dataset.append(prepare(batch)): samples of this rank, kept for later passes.
bool fills_a_data_set(const Program& program, Ref loop, const Assigned& addition) {
  const CallRef call = program.as_call(loop.with(addition.target));
  const std::string name = facts::lowered(addition.name);
  const bool is_number = addition.value.kind() == Kind::integer ||
                         addition.value.kind() == Kind::floating || scores(addition.value) ||
                         holds_any(addition.value.text(), {".item()", "float(", "len("});
  return call && call.call->name == "append" && !is_number &&
         (name.ends_with("dataset") || name.ends_with("data_set") || name.ends_with("loader"));
}

// global_step += 1 in an evaluation: how many rounds there were, on every rank alike.
bool counts_rounds(std::string_view name) {
  return name.ends_with("step") || name.ends_with("steps") || name.ends_with("iter") ||
         name.ends_with("iters") || name.ends_with("iteration") || name.ends_with("iterations");
}

// file_id += 1 in every round, whatever the round finds.
bool adds_one_each_round(const Program& program, Ref loop, const Assigned& addition) {
  const Ref at = loop.with(addition.target);
  if (at.kind() != Kind::augmented_assignment || addition.value.text() != "1" ||
      program.innermost_loop(at) != loop)
    return false;
  const auto guards = program.guards(at);
  return std::none_of(guards.begin(), guards.end(), [&](const diagnose::Guard& guard) {
    return guard.condition.module == loop.module &&
           loop.module->tree().contains(loop.node, guard.condition.node);
  });
}

// data_time, batch_timer: how long this rank took.
bool tells_time(std::string_view name) {
  const auto words = words_of_name(name);
  return std::any_of(words.begin(), words.end(), [](std::string_view word) {
    return word == "time" || word == "times" || word == "timer" || word == "elapsed";
  });
}

}  // namespace

namespace {

bool is_sum_of_metrics(const Assigned& each, const std::vector<Assigned>& in_loop) {
  return each.value && is_metric(each, in_loop);
}

// All that the loop adds up, in source order, but counts of its rounds, times and lists that are
// written out one by one. What a step of it does is added to `in_loop`.
std::vector<Assigned> sums_kept(const Program& program, Ref loop, std::vector<Assigned>& in_loop) {
  std::vector<Assigned> sums = sums_of(program, loop);
  for (const Assigned& each : additions_by_steps(program, loop, in_loop))
    if (is_sum_of_metrics(each, in_loop)) sums.push_back(each);
  for (const Assigned& each : perhaps_sums_of(program, loop))
    if (is_sum_of_metrics(each, in_loop)) sums.push_back(each);
  if (!sums.empty() && std::all_of(sums.begin(), sums.end(), [&](const Assigned& each) {
        return keeps_a_batch(program, loop, each);
      }))
    return {};
  std::set<std::string> written;
  for (const Assigned& each : sums)
    if (!written.contains(each.name) && is_written_one_by_one(loop, each.name))
      written.insert(each.name);
  std::erase_if(sums, [&](const Assigned& each) {
    return written.contains(each.name) || counts_rounds(each.name) ||
           fills_a_data_set(program, loop, each) || adds_one_each_round(program, loop, each) ||
           (tells_time(each.name) && !is_sum_of_metrics(each, in_loop));
  });
  std::stable_sort(sums.begin(), sums.end(),
                   [](const Assigned& a, const Assigned& b) { return a.target < b.target; });
  return sums;
}

}  // namespace

MetricSum first_sum(const Program& program, Ref loop) {
  std::vector<Assigned> in_loop = assignments_in(loop);
  const std::vector<Assigned> sums = sums_kept(program, loop, in_loop);
  const auto first = [&](const auto& accepts) {
    const auto found = std::find_if(sums.begin(), sums.end(), accepts);
    return found == sums.end() ? MetricSum{} : MetricSum{loop.with(found->target), found->name};
  };
  if (const MetricSum metric =
          first([&](const Assigned& each) { return is_sum_of_metrics(each, in_loop); }))
    return metric;
  if (const MetricSum number = first([](const Assigned& each) {
        return !counts(each.name) && !(each.value && is_size(each.value.text()));
      }))
    return number;
  return first([](const Assigned&) { return true; });
}

std::vector<MetricSum> sums_of_metrics(const Program& program, Ref loop) {
  std::vector<Assigned> in_loop = assignments_in(loop);
  std::vector<MetricSum> out;
  for (const Assigned& each : sums_kept(program, loop, in_loop))
    if (is_sum_of_metrics(each, in_loop)) out.push_back({loop.with(each.target), each.name});
  return out;
}

namespace {

// mean.update(total) or mean(total): a meter takes the sum over.
bool is_handed_to_meter(const Program& program, Ref loop, const std::string& name) {
  for (const CallRef& call : facts::calls_in(body_around(program, loop))) {
    // results.update({"loss": total}) of a dictionary, bar.update(total) of a display
    const bool updates = call.receiver() && call.positional(0) &&
                         (call.call->name == "update" || call.call->name == "forward") &&
                         call.positional(0).kind() != Kind::dictionary &&
                         !says_any(call.receiver().text(), {"bar", "progress", "tqdm"});
    if (variables_in(call.ref().child(Field::arguments)).contains(name) &&
        (updates || is_torchmetric(program, call.ref().with(call.call->function))))
      return true;
  }
  return false;
}

}  // namespace

MetricSum sum_by_hand(const Program& program, Ref loop) {
  const std::vector<Assigned> in_loop = assignments_in(loop);
  for (const Assigned& each : additions_in(loop)) {
    const bool is_call = loop.with(each.target).kind() == Kind::call;
    if (!is_call && each.value && is_metric(each, in_loop) &&
        !is_handed_to_meter(program, loop, each.name))
      return {loop.with(each.target), each.name};
  }
  return {};
}

}  // namespace bench::pitfalls
