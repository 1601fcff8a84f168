#include "scenarios/pitfalls/metrics/own_trails.hpp"

#include "scenarios/pitfalls/metrics/plain_meters.hpp"
#include "scenarios/pitfalls/program/argument_for.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"

#include <algorithm>
#include <string_view>

namespace bench::pitfalls {

using diagnose::FunctionRef;
using diagnose::Kind;

namespace {

template <std::size_t size>
bool is_one_of(std::string_view name, const std::string_view (&names)[size]) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

bool is_collective(const CallRef& call) {
  return diagnose::is_collective(call.call->api) ||
         call.call->path.starts_with("torch.distributed");
}

// float(x), np.mean(x), torch.stack(x), x.item(): what a process makes of its own numbers.
bool is_plain(const Program& program, const CallRef& call) {
  constexpr std::string_view kFunctions[] = {
      "abs", "dict",  "enumerate", "float",  "int", "len", "list",  "max",
      "min", "range", "round",     "sorted", "str", "sum", "tuple", "zip"};
  constexpr std::string_view kMethods[] = {
      "item",    "mean",   "sum",   "cpu",    "cuda",   "to",     "detach", "clone",
      "numpy",   "tolist", "float", "double", "max",    "min",    "std",    "items",
      "values",  "keys",   "get",   "format", "append", "extend", "view",   "reshape",
      "squeeze", "div",    "mul",   "add",    "copy"};
  if (is_collective(call)) return false;
  const std::string_view path = call.call->path;
  for (const std::string_view library : {"torch.", "numpy.", "math.", "statistics."})
    if (path.starts_with(library)) return true;
  if (!path.empty() || program.callee(call)) return false;
  return call.receiver() ? is_one_of(call.call->name, kMethods)
                         : is_one_of(call.call->name, kFunctions);
}

// def mean(values): return sum(values) / len(values). All that the function calls is in sight.
bool stays_in_process(const Program& program, const CallRef& call, int depth = 0) {
  constexpr int kHelpers = 3;
  if (is_plain(program, call)) return true;
  const FunctionRef callee = program.callee(call);
  if (!callee || depth == kHelpers) return false;
  const auto calls = facts::calls_in({callee.module, callee.function->body});
  return std::all_of(calls.begin(), calls.end(), [&](const CallRef& each) {
    return stays_in_process(program, each, depth + 1);
  });
}

// The losses that the loop makes backward passes from.
VariableNames losses_of(Ref loop) {
  VariableNames out;
  for (const CallRef& call : facts::calls_in(loop))
    if (call.call->name == "backward")
      if (const Ref loss = facts::loss_of(call)) out.merge(variables_in(loss));
  return out;
}

// A list, a dictionary or a tensor, which a function may change in place.
bool may_be_changed(const std::string& name, const std::vector<Assigned>& assigned) {
  return std::any_of(assigned.begin(), assigned.end(), [&](const Assigned& each) {
    const Kind kind = each.value.kind();
    return each.name == name &&
           (kind == Kind::list || kind == Kind::dictionary || kind == Kind::comprehension ||
            (holds_any(each.value.text(),
                       {"torch.", "ensor(", ".detach()", ".clone()", ".cuda("}) &&
             !holds_any(each.value.text(), {".item()", "float("})));
  });
}

bool only_looks(std::string_view name) {
  constexpr std::string_view kLooks[] = {"print",      "info",        "debug",
                                         "warning",    "log",         "plot",
                                         "dump",       "write",       "writerow",
                                         "add_scalar", "add_scalars", "add_histogram",
                                         "save",       "savetxt",     "step",
                                         "backward",   "append",      "extend",
                                         "update",     "set_postfix", "set_description",
                                         "zero_",      "fill_",       "clear",
                                         "reset"};
  return is_one_of(name, kLooks);
}

// Names of one function, and which of them hold what is made of its sums or losses.
class Trail {
 public:
  Trail(const Program& program, Ref loop, const std::vector<MetricSum>& sums,
        const std::string& figure)
      : program_(program),
        loop_(loop),
        body_(body_around(program, loop)),
        assigned_(assignments_in(body_)),
        chain_(behind({figure}, assigned_)),
        behind_losses_(behind(losses_of(loop), assigned_)) {
    VariableNames begin = losses_of(loop);
    for (const MetricSum& sum : sums) begin.insert(sum.name);
    for (const std::string& name : chain_)
      if (meet(behind({name}, assigned_), begin)) tracked_.insert(name);
    tracked_ = with_wholes(tracked_);
  }

  bool may_ask_others(const std::vector<MetricSum>& sums, Ref condition) const {
    return asks_in(condition) ||
           std::any_of(sums.begin(), sums.end(),
                       [&](const MetricSum& sum) { return is_kept_out_of_sight(sum); }) ||
           std::any_of(assigned_.begin(), assigned_.end(),
                       [&](const Assigned& each) {
                         return chain_.contains(each.name) &&
                                (asks_in(each.value) || is_other_figure(each));
                       }) ||
           is_handed_out();
  }

 private:
  // total = misc.mean_over_world(total)
  bool asks_in(Ref value) const {
    const auto calls = facts::calls_in(value);
    return std::any_of(calls.begin(), calls.end(), [&](const CallRef& call) {
      return meet(variables_in(call.ref()), tracked_) && !stays_in_process(program_, call);
    });
  }

  // reduced = misc.average(parts), beside the loss that is made of them.
  bool is_other_figure(const Assigned& each) const {
    const Ref round = loop_.child(diagnose::Field::body);
    if (!round.module->tree().contains(round.node, each.target) ||
        behind_losses_.contains(each.name) || tracked_.contains(each.name))
      return false;
    const auto calls = facts::calls_in(each.value);
    return !std::all_of(calls.begin(), calls.end(),
                        [&](const CallRef& call) { return stays_in_process(program_, call); });
  }

  // losses.update(loss.item()) of an object that may ask the others in the end.
  bool is_kept_out_of_sight(const MetricSum& sum) const {
    const CallRef add = program_.as_call(sum.at);
    return tracked_.contains(sum.name) && add && add.call->name != "append" &&
           add.call->name != "extend" && !adds_up_alone(program_, add.receiver());
  }

  // dist.broadcast(total, 0), misc.share(losses), losses.share().
  bool is_handed_out() const {
    const auto calls = facts::calls_in(body_);
    return std::any_of(calls.begin(), calls.end(), [&](const CallRef& call) {
      const bool is_statement =
          (*call.module)[(*call.module)[call.call->node].parent].kind == Kind::expression_statement;
      if (only_looks(call.call->name) || (!is_statement && !is_collective(call)) ||
          stays_in_process(program_, call))
        return false;
      if (call.receiver() && tracked_.contains(std::string(call.receiver().text()))) return true;
      for (const Ref value : facts::arguments_of(call))
        for (const std::string& name : value ? variables_in(value) : VariableNames{})
          if (tracked_.contains(name) && (is_collective(call) || may_be_changed(name, assigned_)))
            return true;
      return false;
    });
  }

  const Program& program_;
  Ref loop_;
  Ref body_;
  std::vector<Assigned> assigned_;
  VariableNames chain_;          // the figure and what it is made of
  VariableNames behind_losses_;  // what the backward passes start from, and what that is made of
  VariableNames tracked_;        // of the chain, what holds a sum or a loss
};

}  // namespace

bool may_ask_others(const Program& program, Ref loop, const std::vector<MetricSum>& sums,
                    const std::string& figure, Ref condition) {
  return Trail(program, loop, sums, figure).may_ask_others(sums, condition);
}

}  // namespace bench::pitfalls
