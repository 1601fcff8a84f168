#include "scenarios/pitfalls/metrics/own_copy.hpp"

#include "scenarios/pitfalls/data/loaders.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <utility>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Field;
using diagnose::FunctionRef;
using diagnose::Kind;
using diagnose::NodeId;

namespace {

// One reduction of a variable into `reduced` at `call`.
struct ReducedCopy {
  Ref call;
  Ref loop;         // around the call
  std::string own;  // the variable
  std::string reduced;
  bool is_apart = false;  // what is reduced is a tensor of its own: `own` stays as it was
};

// What all assignments of a variable say of it.
struct OwnFigure {
  bool is_of_part = false;
  NodeId first_set = diagnose::kNoNode;
  VariableNames made_of;
};

// torch.tensor(loss), loss.clone(): a tensor of its own. What torch.as_tensor and torch.from_numpy
// give may share its memory with what they are given.
bool makes_copy(std::string_view text) {
  constexpr std::string_view kMaker = "tensor(";
  for (std::size_t at = text.find(kMaker); at != std::string_view::npos;
       at = text.find(kMaker, at + 1))
    if (at == 0 || text[at - 1] != '_') return true;
  return holds_any(text, {"Tensor(", ".clone()", "deepcopy("});
}

// Seconds, memory and flags are no figures of a part of the data.
bool is_metric_name(std::string_view name) {
  return says_any(name, {"loss",    "acc",   "score", "f1",     "iou",    "auc", "psnr",
                         "ssim",    "dice",  "prec",  "recall", "err",    "ppl", "perplex",
                         "success", "meter", "rmse",  "mae",    "metric", "bleu"}) &&
         !says_any(name, {"time", "mem", "flag", "accum"});
}

// torch.tensor(loss), loss.clone(), loss.cuda(): the one variable that the value holds; empty where
// it holds several or computes something.
std::string variable_held(Ref value) {
  const VariableNames names = variables_in(value);
  std::string found;
  for (const std::string& name : names) {
    if (says_any(name, {"device", "rank", "world", "gpu"}) ||
        !value.module->import_path(name).empty())
      continue;
    if (!found.empty()) return {};
    found = name;
  }
  return found;
}

}  // namespace

std::string figure_copied(Ref value) {
  const std::string held = makes_copy(value.text()) ? variable_held(value) : std::string();
  return is_metric_name(held) ? held : std::string();
}

namespace {

// The nodes of a kind in the subtree, in source order.
std::span<const NodeId> nodes_in(Ref subtree, diagnose::ListedKind kind) {
  const std::span<const NodeId> all = subtree.module->nodes_of(kind);
  const auto first = std::lower_bound(all.begin(), all.end(), subtree.node);
  const auto last = std::lower_bound(first, all.end(), subtree.module->tree()[subtree.node].last);
  return {first, last};
}

// What reduces over ranks, and the functions that do: asked for once for all functions.
class Reducers {
 public:
  Reducers(const Program& program, const std::vector<Reduction>& reductions) : program_(program) {
    for (const Reduction& each : reductions) {
      const FunctionRef helper = program.enclosing_function(each.call);
      if (helper) asking_.insert(helper);
      const CallRef call = program.as_call(each.call);
      // All ranks gather to compare as well as to average; what is sent round is one rank's.
      if (!call || call.call->api == Api::broadcast || says_any(call.call->name, {"gather"}))
        continue;
      calls_.insert(each.call);
      if (helper) helpers_.insert(helper);
    }
  }

  bool reduces(const CallRef& call) const {
    if (calls_.contains(call.ref())) return true;
    if (helpers_.empty()) return false;
    const FunctionRef helper = program_.callee(call);
    return helper && helpers_.contains(helper) &&
           says_any(helper.function->name, {"reduce", "average", "mean", "global"});
  }

  // The function or one that it calls asks other ranks.
  bool may_reduce(FunctionRef function) const {
    if (!function || asking_.empty()) return false;
    if (asking_.contains(function)) return true;
    const auto reached = program_.reached({function.module, function.function->body});
    return std::any_of(reached.begin(), reached.end(),
                       [&](const FunctionRef& each) { return asking_.contains(each); });
  }

 private:
  const Program& program_;
  std::set<Ref> calls_;
  std::set<FunctionRef> helpers_;
  std::set<FunctionRef> asking_;  // also those that gather or send round
};

// The figure need not be one rank's: one rank evaluates, or over a loader that gives each rank all
// the data, or the evaluation reduces on its own.
bool may_be_of_all(const Program& program, const Reducers& reducers, const Assigned& own) {
  if (program.guarded_by_rank(own.value) != diagnose::RankTest::none) return true;
  for (const CallRef& call : facts::calls_in(own.value)) {
    if (reducers.may_reduce(program.callee(call))) return true;
    for (std::size_t i = 0; const Ref argument = call.positional(i); ++i)
      for (const CallRef& loader : loaders_of(program, argument))
        if (!sampler_of(program, loader)) return true;
  }
  return says_any(own.value.text(), {"full", "rank"});
}

bool is_plateau_step(const Program& program, const CallRef& call) {
  if (!call.receiver()) return false;
  const auto& sources = program.sources(call.receiver());
  return std::any_of(sources.begin(), sources.end(), [&](const diagnose::Source& source) {
    const CallRef made = program.as_call(source.ref);
    return made && made.call->name == "ReduceLROnPlateau";
  });
}

// stopper(accuracy, path, model), early_stopping(loss, model): what it keeps as the best decides.
bool is_early_stop(const Program& program, const CallRef& call) {
  if (call.call->api != diagnose::Api::none || !call.positional(0)) return false;
  const Ref object = call.receiver() ? call.receiver() : Ref{call.module, call.call->function};
  if (call.receiver() && call.call->name != "step" && call.call->name != "update" &&
      call.call->name != "check")
    return false;
  if (says_any(object.text(), {"early_stop", "earlystop"})) return true;
  const auto& sources = program.sources(object);
  return std::any_of(sources.begin(), sources.end(), [&](const diagnose::Source& source) {
    const CallRef made = program.as_call(source.ref);
    return made && says_any(made.call->name, {"early_stop", "earlystop"});
  });
}

// One function and what is reduced in it.
class CopiesIn {
 public:
  CopiesIn(const Program& program, FunctionRef function, const Reducers& reducers)
      : program_(program),
        function_(function),
        reducers_(reducers),
        body_{function.module, function.function->body} {}

  // Where a figure of the rank's own decides, and what it is reduced into.
  void check(Report& report) {
    find();
    if (copies_.empty()) return;
    for (const NodeId test : nodes_in(body_, Kind::if_statement)) check_test(test, report);
    for (const NodeId node : nodes_in(body_, Kind::assignment)) check_best(node, report);
    for (const CallRef& call : calls_) {
      const Ref given = call.positional(0);
      const ReducedCopy* copy = given ? own_at(given.text(), call.ref()) : nullptr;
      if (copy == nullptr) continue;
      if (call.call->name == "step" && is_plateau_step(program_, call))
        tell(call.ref(), *copy, "plateau", report);
      else if (is_early_stop(program_, call))
        tell(call.ref(), *copy, "early-stop", report);
    }
  }

 private:
  void find() {
    calls_ = facts::calls_in(body_);
    std::vector<CallRef> reducing;
    for (const CallRef& call : calls_)
      if (call.positional(0) && reducers_.reduces(call) &&
          program_.enclosing_function(call.ref()) == function_)
        reducing.push_back(call);
    if (reducing.empty()) return;
    for (Assigned& each : assignments_in(body_)) {
      if (each.value) targets_.emplace(each.value.node, each.name);
      assigned_[each.name].push_back(std::move(each));
    }
    for (const CallRef& call : reducing)
      if (const auto targets = targets_of(call); !targets.empty())
        add_returned(call, targets);
      else
        add_in_place(call);
  }

  // reduced in reduced = reduce(loss).item(), all names in a, b = reduce(loss, score).
  std::vector<std::string> targets_of(const CallRef& call) const {
    const auto& tree = body_.module->tree();
    std::vector<std::string> out;
    for (NodeId at = call.call->node; at != diagnose::kNoNode && at != body_.node && out.empty();
         at = tree[at].parent) {
      const auto [first, last] = targets_.equal_range(at);
      for (auto each = first; each != last; ++each) out.push_back(each->second);
    }
    return out;
  }

  void add(const CallRef& call, const std::string& own, const std::string& reduced, bool is_apart) {
    if (!own.empty() && own != reduced && is_metric_name(own))
      copies_[own].push_back(
          {call.ref(), program_.innermost_loop(call.ref()), own, reduced, is_apart});
  }

  void add_returned(const CallRef& call, const std::vector<std::string>& targets) {
    Ref given = call.positional(0);
    // shared = torch.tensor(loss).cuda(); mean = reduce(shared)
    if (const CallRef made = program_.made_by(given);
        made && !is_metric_name(variable_held(given)) && made.module == function_.module)
      given = made.ref();
    const std::string own = variable_held(given);
    if (std::find(targets.begin(), targets.end(), own) == targets.end())
      add(call, own, targets.front(), makes_copy(given.text()) || is_copied_in_helper(call));
  }

  // The helper makes a tensor of what it is given: score = torch.tensor(score).
  bool is_copied_in_helper(const CallRef& call) const {
    const FunctionRef helper = program_.callee(call);
    if (!helper || helper.function->parameters.empty()) return false;
    const std::string given(helper.function->parameters.front().name);
    const auto made = assignments_in({helper.module, helper.function->body});
    return std::any_of(made.begin(), made.end(), [&](const Assigned& each) {
      return makes_copy(each.value.text()) && variables_in(each.value).contains(given);
    });
  }

  // t = torch.tensor(loss); dist.all_reduce(t).
  void add_in_place(const CallRef& call) {
    const Ref given = call.positional(0);
    if (given.kind() != Kind::identifier) return;
    const auto found = assigned_.find(std::string(given.text()));
    if (found == assigned_.end()) return;
    const auto below =
        std::partition_point(found->second.begin(), found->second.end(),
                             [&](const Assigned& each) { return each.target < call.call->node; });
    if (below == found->second.begin()) return;
    const Assigned& made = *std::prev(below);
    if (makes_copy(made.value.text())) add(call, variable_held(made.value), made.name, true);
  }

  // if loss < best: best = loss.
  void check_test(NodeId node, Report& report) const {
    const Ref test = body_.with(node);
    const Ref condition = test.child(Field::condition);
    if (!condition) return;
    const auto& tree = test.module->tree();
    for (const NodeId comparison : nodes_in(condition, Kind::comparison)) {
      const Ref left = test.with(tree.child_at(comparison, 0));
      const Ref right = test.with(tree.child_at(comparison, 1));
      if (!left || !right || left.text() == right.text()) continue;
      for (const auto& [own, best] : {std::pair(left, right), std::pair(right, left)})
        if (const ReducedCopy* copy = own_at(own.text(), test);
            copy != nullptr && keeps(test, best.text(), own.text())) {
          tell(test, *copy, "best-checkpoint", report);
          return;
        }
    }
  }

  static bool keeps(Ref test, std::string_view best, std::string_view own) {
    const auto sets = nodes_in(test, Kind::assignment);
    return std::any_of(sets.begin(), sets.end(), [&](NodeId set) {
      return test.with(set).child(Field::left).text() == best &&
             test.with(set).child(Field::right).text() == own;
    });
  }

  // best = max(best, accuracy).
  void check_best(NodeId node, Report& report) const {
    const Ref at = body_.with(node);
    const CallRef best = program_.as_call(at.child(Field::right));
    if (!best || (best.call->name != "max" && best.call->name != "min") || best.receiver()) return;
    const Ref first = best.positional(0);
    const Ref second = best.positional(1);
    if (!first || !second || first.text() == second.text()) return;
    const std::string_view target = at.child(Field::left).text();
    const Ref own = first.text() == target ? second : second.text() == target ? first : Ref{};
    if (!own) return;
    if (const ReducedCopy* copy = own_at(own.text(), at))
      tell(at, *copy, "best-checkpoint", report);
  }

  // The copy that the name is reduced into, where at `use` the name still is the rank's own.
  const ReducedCopy* own_at(std::string_view name, Ref use) const {
    const auto found = copies_.find(std::string(name));
    if (found == copies_.end() || program_.enclosing_function(use) != function_) return nullptr;
    const Ref loop = program_.innermost_loop(use);
    const OwnFigure& figure = figure_of(found->first);
    for (const ReducedCopy& copy : found->second)
      if (copy.loop == loop && is_own_at(figure, copy, use)) return &copy;
    return nullptr;
  }

  // Nothing gives the name a reduced value, and below the reduction it still is the rank's own.
  bool is_own_at(const OwnFigure& own, const ReducedCopy& copy, Ref use) const {
    if (use.node > copy.call.node && !copy.is_apart) return false;
    return own.is_of_part && !own.made_of.contains(copy.reduced) &&
           own.first_set < std::min(use.node, copy.call.node);
  }

  const OwnFigure& figure_of(const std::string& name) const {
    const auto [found, is_new] = figures_.try_emplace(name);
    const auto assigned = assigned_.find(name);
    if (!is_new || assigned == assigned_.end()) return found->second;
    OwnFigure& figure = found->second;
    figure.first_set = assigned->second.front().target;
    figure.is_of_part = true;
    for (const Assigned& each : assigned->second) {
      figure.is_of_part = figure.is_of_part && !may_be_of_all(program_, reducers_, each);
      figure.made_of.merge(variables_in(each.value));
    }
    return figure;
  }

  static void tell(Ref at, const ReducedCopy& copy, std::string_view trial, Report& report) {
    as_in_trial(
        report.at(
            at, Confidence::likely,
            "'" + copy.own +
                "' is that of one rank's part of the data, and decides: what it is reduced into "
                "is '" +
                copy.reduced + "'"),
        trial)
        .help = "Decide by '" + copy.reduced + "'.";
  }

  const Program& program_;
  FunctionRef function_;
  const Reducers& reducers_;
  Ref body_;
  std::vector<CallRef> calls_;
  std::multimap<NodeId, std::string> targets_;             // by what they are given
  std::map<std::string, std::vector<Assigned>> assigned_;  // in source order
  mutable std::map<std::string, OwnFigure> figures_;
  std::map<std::string, std::vector<ReducedCopy>> copies_;  // by the name that stays as it was
};

}  // namespace

void check_own_copies(const Program& program, const std::vector<Reduction>& reductions,
                      Report& report) {
  const Reducers reducers(program, reductions);
  for (const FunctionRef& function : program.functions())
    CopiesIn(program, function, reducers).check(report);
}

}  // namespace bench::pitfalls
