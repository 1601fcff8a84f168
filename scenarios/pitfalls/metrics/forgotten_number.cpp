#include "scenarios/pitfalls/metrics/forgotten_number.hpp"

#include "scenarios/pitfalls/metrics/plain_meters.hpp"
#include "scenarios/pitfalls/metrics/running_sums.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"

#include <algorithm>
#include <vector>

namespace bench::pitfalls {

using diagnose::Field;
using diagnose::FunctionRef;
using diagnose::Kind;
using diagnose::kNoNode;
using diagnose::NodeId;

namespace {

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

// x.to(rank), x.cuda(local_rank) and device=rank: where a tensor lives.
bool is_device(Ref word) {
  const auto& tree = word.module->tree();
  const NodeId call = tree.ancestor(word.node, Kind::call);
  const NodeId option = tree.ancestor(word.node, Kind::keyword_argument);
  if (option != kNoNode && tree.text(tree.child(option, Field::name)) == "device") return true;
  const std::string_view function =
      call == kNoNode ? std::string_view() : tree.text(tree.child(call, Field::function));
  return function.ends_with(".to") || function.ends_with(".cuda");
}

// A name in the expression speaks of other ranks: the number may be reduced there. A score of
// scikit-learn speaks of its labels (average_precision_score, average="macro").
bool speaks_of_ranks(Ref part) {
  const auto& tree = part.module->tree();
  for (NodeId at = part.node; at < tree[part.node].last; ++at) {
    const Ref word = part.with(at);
    const NodeId keyword = tree.ancestor(at, Kind::keyword_argument);
    const bool is_option = keyword != kNoNode && tree.contains(part.node, keyword) &&
                           tree.text(tree.child(keyword, Field::name)) == "average";
    const bool is_name =
        word.kind() == Kind::identifier && !is_option &&
        !(tree[at].field == Field::name && tree[tree[at].parent].kind == Kind::keyword_argument);
    if (is_name && !word.text().ends_with("_score") && !is_device(word) &&
        says_any(word.text(), {"world", "reduce", "gather", "sync", "dist", "rank", "average",
                               "collect", "aggregate"}))
      return true;
  }
  return facts::contains(part.text(), "size()");
}

// writer.add_scalar(...), wandb.log(...): what they are given is the figure of the run.
bool writes_figures(const CallRef& call) {
  const std::string_view name = call.call->name;
  return name == "add_scalar" || name == "add_scalars" || name == "log_metric" ||
         name == "log_metrics" || (name == "log" && call.receiver().text() == "wandb");
}

bool shows_figures(const CallRef& call) {
  const std::string_view name = call.call->name;
  return name == "print" || name == "info" || name == "write" || name == "append";
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
      // metrics["loss"] = mean, and metrics is returned
      if (each.name.ends_with("]")) names_.insert(each.name.substr(0, each.name.find('[')));
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
      in_doubt_ = in_doubt_ || speaks_of_ranks(part) ||
                  (meet(here, reduced_) && !is_share_of_reduced(part));
    }
    if (taken && (!first_ || value.node < first_.node)) first_ = value;
    return taken;
  }

  // correct / total and (correct / total).item(), where total alone is reduced: a part of the
  // whole.
  bool is_share_of_reduced(Ref part) const {
    const auto& tree = part.module->tree();
    for (NodeId at = part.node; at < tree[part.node].last; ++at) {
      if (tree[at].kind != Kind::binary || tree[at].op != diagnose::Op::divide) continue;
      const VariableNames above = variables_in(part.with(tree.child(at, Field::left)));
      const VariableNames below = variables_in(part.with(tree.child(at, Field::right)));
      return meet(above, names_) && !meet(above, reduced_) && meet(below, reduced_) &&
             !meet(below, names_);
    }
    return false;
  }

  void look_at(NodeId node) {
    const Ref at = body_.with(node);
    if (at.kind() == Kind::return_statement) {
      const Ref value = at.with(at.module->tree().child_at(node, 0));
      told_ = (value && takes(value)) || told_;
    } else if (at.kind() == Kind::if_statement) {
      tell(at.child(Field::condition));
    } else if (const CallRef call = program_.as_call(at)) {
      if (writes_figures(call) ||
          (shows_figures(call) && program_.guarded_by_rank(at) == diagnose::RankTest::main_only))
        tell(at.child(Field::arguments));
    }
  }

  void tell(Ref whole) {
    // print(f"local loss {mean}"): shown as what it is.
    if (!meet(variables_in(whole), names_) || says_any(whole.text(), {"local"})) return;
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

namespace {

// What the loop adds up in variables, by name.
std::vector<Assigned> numbers_in(const Program& program, Ref loop) {
  std::vector<Assigned> out = additions_in(loop);
  for (const auto& more : {self_sums_in(program, loop), meter_sums_in(program, loop)})
    out.insert(out.end(), more.begin(), more.end());
  std::stable_sort(out.begin(), out.end(),
                   [](const Assigned& a, const Assigned& b) { return a.target < b.target; });
  return out;
}

// reduced.item(), reduced / n; not criterion(scores), where scores are gathered as well.
bool is_passed_on(Ref value) {
  constexpr std::string_view kPlain[] = {"item",  "float", "mean",   "sum",   "detach",
                                         "cpu",   "numpy", "tolist", "clone", "squeeze",
                                         "round", "int",   "max",    "min"};
  const auto calls = facts::calls_in(value);
  return std::all_of(calls.begin(), calls.end(), [&](const CallRef& call) {
    return std::find(std::begin(kPlain), std::end(kPlain), call.call->name) != std::end(kPlain);
  });
}

// The names and what assignments of the loop pass them on to.
VariableNames and_made_of(VariableNames names, const std::vector<Assigned>& in_loop) {
  for (bool grown = true; grown;) {
    grown = false;
    for (const Assigned& each : in_loop)
      if (is_passed_on(each.value) && meet(variables_in(each.value), names))
        grown = names.insert(each.name).second || grown;
  }
  return names;
}

// metrics in metrics.update(loss=loss) and metrics.meters["loss"].update(loss), which is reduced;
// scores in scores.record(out), too.
std::string updated_in(Ref loop, const VariableNames& reduced) {
  constexpr std::string_view kUpdates[] = {"update", "record", "append", "extend", "add"};
  for (const CallRef& call : facts::calls_in(loop)) {
    if (!call.receiver() ||
        std::find(std::begin(kUpdates), std::end(kUpdates), call.call->name) == std::end(kUpdates))
      continue;
    for (const std::string& name : variables_in(call.receiver()))
      if (reduced.contains(name)) return name;
  }
  return {};
}

// loss_meter.update(value): the name says so, wherever the value comes from.
bool is_named_metric(std::string_view name) {
  return says_any(name, {"loss", "acc", "score", "psnr", "ssim", "iou", "dice", "err", "correct",
                         "hits"}) &&
         !says_any(name, {"time", "accum", "count", "num"});
}

// Something that the addition is made of in the loop speaks of other ranks. What its labels become
// below, as in labels = gather(labels) after loss = criterion(out, labels), is no part of it.
bool may_ask_ranks(const Assigned& addition, const std::vector<Assigned>& in_loop) {
  if (speaks_of_ranks(addition.value)) return true;
  const VariableNames names = behind(with_wholes(variables_in(addition.value)), in_loop);
  return std::any_of(in_loop.begin(), in_loop.end(), [&](const Assigned& each) {
    return each.target < addition.target && names.contains(each.name) &&
           speaks_of_ranks(each.value);
  });
}

}  // namespace

ForgottenNumber forgotten_number(const Program& program, Ref loop, const VariableNames& reduced) {
  const FunctionRef function = program.enclosing_function(loop);
  if (!function || reduced.empty()) return {};
  const Ref body{function.module, function.function->body};
  const VariableNames all = behind(reduced, assignments_in(body));
  const std::vector<Assigned> numbers = numbers_in(program, loop);
  const auto partner = std::find_if(numbers.begin(), numbers.end(), [&](const Assigned& each) {
    return all.contains(each.name) || meet(variables_in(each.value), reduced);
  });
  const std::string beside = partner != numbers.end() ? partner->name : updated_in(loop, reduced);
  if (beside.empty()) return {};
  const std::vector<Assigned> in_loop = assignments_in(loop);
  const VariableNames by_batch = and_made_of(reduced, in_loop);
  for (const Assigned& each : numbers) {
    const bool of_whole =
        each.name.ends_with("]") && all.contains(each.name.substr(0, each.name.find('[')));
    // What is reduced batch by batch is so before it is added.
    const bool of_one_rank =
        program.guarded_by_rank(loop.with(each.target)) == diagnose::RankTest::main_only;
    if (all.contains(each.name) || of_whole || of_one_rank ||
        says_any(each.name, {"flops", "macs"}) || meet(variables_in(each.value), by_batch) ||
        !(is_metric(each, in_loop) || is_named_metric(each.name)) || may_ask_ranks(each, in_loop))
      continue;
    if (const Ref use = Fate(program, body, loop, reduced, each.name).known_as())
      return {use, each.name, beside};
  }
  return {};
}

namespace {

// The targets of a, b = evaluate(...), empty for any other call.
std::vector<Ref> unpacked(const CallRef& call) {
  const Ref node = call.ref();
  const Ref parent = node.with((*node.module)[node.node].parent);
  if (parent.kind() != Kind::assignment || parent.child(Field::right).node != node.node) return {};
  const Ref left = parent.child(Field::left);
  const std::vector<Ref> parts = parts_of(left);
  return parts.size() > 1 ? parts : std::vector<Ref>{};
}

// The returned part is made of a metric that the loop adds up.
bool holds_metric(Ref part, Ref body, Ref loop) {
  const VariableNames names = behind(variables_in(part), assignments_in(body));
  const std::vector<Assigned> in_loop = assignments_in(loop);
  const std::vector<Assigned> additions = additions_in(loop);
  return std::any_of(additions.begin(), additions.end(), [&](const Assigned& each) {
    return names.contains(each.name) && is_metric(each, in_loop);
  });
}

}  // namespace

ForgottenNumber forgotten_result(const Program& program, Ref loop, const CallRef& evaluation,
                                 const VariableNames& reduced) {
  const FunctionRef function = program.enclosing_function(loop);
  const FunctionRef caller = program.enclosing_function(evaluation.ref());
  const std::vector<Ref> targets = unpacked(evaluation);
  if (!function || !caller || targets.empty() || function.function->returns.size() != 1) return {};
  const Ref returned{function.module, function.function->returns.front()};
  const std::vector<Ref> parts = parts_of(returned);
  if (parts.size() != targets.size()) return {};
  const Ref body{function.module, function.function->body};
  const Ref there{caller.module, caller.function->body};
  const VariableNames all = behind(reduced, assignments_in(there));
  const auto partner = std::find_if(targets.begin(), targets.end(), [&](Ref target) {
    return all.contains(std::string(target.text()));
  });
  if (partner == targets.end()) return {};
  for (std::size_t i = 0; i < targets.size(); ++i) {
    const std::string name(targets[i].text());
    if (all.contains(name) || !holds_metric(parts[i], body, loop)) continue;
    if (const Ref use = Fate(program, there, evaluation.ref(), reduced, name).known_as())
      return {use, name, std::string(partner->text())};
  }
  return {};
}

}  // namespace bench::pitfalls
