#include "scenarios/pitfalls/metrics/told_meters.hpp"

#include "scenarios/pitfalls/metrics/evaluation_loops.hpp"
#include "scenarios/pitfalls/metrics/phase_loops.hpp"
#include "scenarios/pitfalls/program/argument_for.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"

#include <algorithm>
#include <string>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Field;
using diagnose::FunctionRef;
using diagnose::Kind;
using diagnose::kNoNode;
using diagnose::NodeId;

namespace {

// losses of losses.sum, losses.count.clone() in what a tensor is made of.
VariableNames meters_in(Ref value) {
  VariableNames out;
  const auto& tree = value.module->tree();
  for (NodeId at = value.node; at < tree[value.node].last; ++at) {
    const Ref part = value.with(at);
    if (part.kind() != Kind::attribute) continue;
    const std::string_view name = part.child(Field::attribute).text();
    const Ref object = part.child(Field::object);
    if (object.kind() == Kind::identifier &&
        (name == "sum" || name == "avg" || name == "count" || name == "total"))
      out.insert(std::string(object.text()));
  }
  return out;
}

// torch.tensor([...]), also moved: .cuda(), .to(device), .float().
bool makes_tensor(const Program& program, Ref value) {
  CallRef made = program.as_call(value);
  while (made && says_any(made.call->name, {"cuda", "to", "float", "double"}) && made.receiver() &&
         program.as_call(made.receiver()))
    made = program.as_call(made.receiver());
  return made && (made.call->name == "tensor" || made.call->name == "as_tensor" ||
                  made.call->name == "stack" || made.call->name == "FloatTensor");
}

// A class in sight that asks no other rank.
bool keeps_to_its_rank(const Program& program, Ref meter) {
  const auto cls = program.class_of(meter);
  return cls && !says_any(cls.module->text(cls.cls->node),
                          {"reduce", "gather", "dist.", "distributed", "sync"});
}

// One evaluation and one reduction of its meters.
class MetersOf {
 public:
  MetersOf(const Program& program, FunctionRef function, Ref collective, std::string_view reduced)
      : program_(program),
        body_{function.module, function.function->body},
        collective_(collective),
        made_of_(behind_of(reduced)),
        calls_(facts::calls_in(body_)) {}

  // The first call below that tells the meter; empty where a reduced figure is told as well, or the
  // meter is given the reduced one.
  CallRef told(const std::string& meter) const {
    CallRef found;
    if (!is_updated_by_evaluation(meter) || is_given_anew(meter)) return {};
    for (const CallRef& call : calls_) {
      if (call.call->node < collective_.node || !tells(call)) continue;
      if (facts::exclusive(call.ref(), collective_)) continue;
      const VariableNames names = variables_in(call.ref().child(Field::arguments));
      if (meet(names, made_of_)) return {};
      if (!found && holds(call, meter)) found = call;
    }
    return found;
  }

 private:
  // The reduced tensor and what is made of it below: a, b = both.tolist().
  VariableNames behind_of(std::string_view reduced) const {
    VariableNames out{std::string(reduced)};
    for (const Assigned& each : assignments_in(body_))
      if (each.target > collective_.node && each.value && meet(variables_in(each.value), out))
        out.insert(each.name);
    return out;
  }

  static bool tells(const CallRef& call) {
    return says_any(call.call->name, {"log", "print", "info", "write", "add_scalar", "record"}) &&
           !says_any(call.ref().text(), {"local", "rank"});
  }

  // log(losses), log(losses.avg) and log("{:.3f}".format(losses.avg)).
  static bool holds(const CallRef& call, const std::string& meter) {
    const auto arguments = facts::arguments_of(call);
    return std::any_of(arguments.begin(), arguments.end(), [&](Ref argument) {
      const auto& tree = argument.module->tree();
      for (NodeId at = argument.node; at < tree[argument.node].last; ++at)
        if (tree[at].kind == Kind::identifier && tree.text(at) == meter &&
            tree[at].field != Field::name && tree[at].field != Field::attribute)
          return true;
      return false;
    });
  }

  // losses.update(loss) in a loop above that passes no gradient back.
  bool is_updated_by_evaluation(const std::string& meter) const {
    return std::any_of(calls_.begin(), calls_.end(), [&](const CallRef& call) {
      if (call.call->node > collective_.node || call.receiver().text() != meter ||
          (call.call->name != "update" && call.call->name != "add"))
        return false;
      const Ref loop = program_.innermost_loop(call.ref());
      return loop && !trains_in_loop(program_, loop) &&
             (program_.is_evaluation(loop) || passes_without_grad(program_, loop));
    });
  }

  // losses.avg = both[0] / both[1], losses.update(mean), losses = Meter() below.
  bool is_given_anew(const std::string& meter) const {
    const auto& tree = body_.module->tree();
    for (NodeId at = collective_.node; at < tree[body_.node].last; ++at) {
      const Ref node = body_.with(at);
      if (node.kind() == Kind::assignment || node.kind() == Kind::augmented_assignment) {
        const std::string_view left = node.child(Field::left).text();
        if (left == meter || left.starts_with(meter + ".")) return true;
      }
      const CallRef call = program_.as_call(node);
      if (call && call.receiver() && call.receiver().text() == meter) return true;
    }
    return false;
  }

  const Program& program_;
  Ref body_;
  Ref collective_;
  VariableNames made_of_;
  std::vector<CallRef> calls_;
};

// What the variable is made of above the collective, in its function.
Ref made_above(FunctionRef function, std::string_view name, Ref collective) {
  Ref value;
  for (const Assigned& each : assignments_in({function.module, function.function->body}))
    if (each.name == name && each.target < collective.node && each.value) value = each.value;
  return value;
}

}  // namespace

void check_told_meters(const Program& program, const std::vector<Reduction>& reductions,
                       Report& report) {
  for (const Reduction& reduction : reductions) {
    const CallRef call = program.as_call(reduction.call);
    const FunctionRef function = program.enclosing_function(reduction.call);
    if (!function || !call || call.call->api != Api::all_reduce ||
        reduction.value.kind() != Kind::identifier)
      continue;
    const std::string_view reduced = reduction.value.text();
    const Ref made = made_above(function, reduced, reduction.call);
    if (!made || !makes_tensor(program, made)) continue;
    const MetersOf meters(program, function, reduction.call, reduced);
    for (const std::string& meter : meters_in(made)) {
      const CallRef told = meters.told(meter);
      if (!told) continue;
      const auto& tree = told.module->tree();
      const auto arguments = told.ref().child(Field::arguments);
      Ref use;
      for (NodeId at = arguments.node; !use && at < tree[arguments.node].last; ++at)
        if (tree[at].kind == Kind::identifier && tree.text(at) == meter) use = told.ref().with(at);
      if (!use || !keeps_to_its_rank(program, use)) continue;
      as_in_trial(report.at(told.ref(), Confidence::likely,
                            "'" + meter +
                                "' is that of one rank's part of the data, and is told: "
                                "what it is reduced into is '" +
                                std::string(reduced) + "'"),
                  "best-checkpoint")
          .help = "Tell what '" + std::string(reduced) + "' gives.";
      break;
    }
  }
}

}  // namespace bench::pitfalls
