#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/frameworks/lightning_dp.hpp"
#include "scenarios/pitfalls/program/facts.hpp"

#include <algorithm>
#include <array>

namespace bench::pitfalls {

using diagnose::ClassRef;
using diagnose::FunctionRef;
using diagnose::Kind;
using diagnose::NodeId;
using diagnose::Wrapper;

namespace {

bool asks_for_own_parameters(const CallRef& call) {
  // self.backbone.parameters(): the parts of a replica are replicas too.
  const Ref receiver = call.receiver();
  if (!receiver || (receiver.text() != "self" && !receiver.text().starts_with("self.")) ||
      (receiver.kind() != Kind::identifier && receiver.kind() != Kind::attribute))
    return false;
  return call.call->name == "parameters" || call.call->name == "state_dict" ||
         call.call->name == "named_parameters";
}

// An argument of a call that need not look into it.
bool is_argument_of_taker(const Program& program, Ref value) {
  const auto& tree = value.module->tree();
  const NodeId arguments = tree[value.node].parent;
  if (tree[arguments].kind != Kind::argument_list) return false;
  const CallRef taker = program.as_call(value.with(tree[arguments].parent));
  static constexpr auto kLookInto = std::to_array<std::string_view>(
      {"next", "iter", "list", "tuple", "dict", "sum", "sorted", "enumerate", "len", "zip"});
  return taker &&
         std::find(kLookInto.begin(), kLookInto.end(), taker.call->name) == kLookInto.end();
}

// checkpoint(run, inputs, self.parameters()) is handed an iterator that it may never ask: only what
// looks into the parameters here is sure to find none.
bool is_handed_on(const Program& program, const CallRef& call) {
  if (is_argument_of_taker(program, call.ref())) return true;
  // weights = self.parameters(): all that reads the name hands it on.
  const std::string_view name = program.assigned_name(call.ref());
  const FunctionRef function = program.enclosing_function(call.ref());
  if (name.empty() || !function) return false;
  const auto& tree = call.module->tree();
  bool handed = false;
  for (NodeId at = call.call->node; at < tree[function.function->body].last; ++at) {
    if (tree[at].kind != Kind::identifier || tree.text(at) != name) continue;
    handed = is_argument_of_taker(program, call.ref().with(at));
    if (!handed) return false;
  }
  return handed;
}

// device or next(self.parameters()).device: only where the caller gives none.
bool is_fallback(const CallRef& call) {
  const auto& tree = call.module->tree();
  for (NodeId at = call.call->node; at != diagnose::kNoNode; at = tree[at].parent) {
    if (tree[at].kind == Kind::boolean || tree[at].kind == Kind::conditional) return true;
    if (tree[at].kind == Kind::assignment || tree[at].kind == Kind::expression_statement ||
        tree[at].kind == Kind::block)
      return false;
  }
  return false;
}

// next(self.parameters()), also by way of iter() or a name; what goes over them all, as in
// zip(self.online.parameters(), self.target.parameters()), finds nothing to do.
bool takes_the_first(const Program& program, const CallRef& call) {
  const auto& tree = call.module->tree();
  for (NodeId at = call.call->node; at != diagnose::kNoNode; at = tree[at].parent) {
    const Kind kind = tree[at].kind;
    if (kind == Kind::for_statement || kind == Kind::comprehension || kind == Kind::for_in_clause ||
        kind == Kind::block)
      break;
    const CallRef taker = at == call.call->node ? CallRef{} : program.as_call(call.ref().with(at));
    if (!taker) continue;
    if (taker.call->name == "next") return true;
    if (taker.call->name != "iter") return false;
  }
  const NodeId loop = tree.ancestor(call.call->node, Kind::for_statement);
  const NodeId clause = tree.ancestor(call.call->node, Kind::for_in_clause);
  const bool goes_over =
      (loop != diagnose::kNoNode &&
       tree.contains(tree.child(loop, diagnose::Field::right), call.call->node)) ||
      (clause != diagnose::kNoNode &&
       tree.contains(tree.child(clause, diagnose::Field::right), call.call->node));
  return !goes_over;
}

// DDP where there are ranks, and these replicas in a run of one process: the mode that is left
// over is rarely the one in use.
bool is_left_over_mode(const Program& program) {
  const auto& wraps = program.wraps();
  return program.has_ddp() && std::all_of(wraps.begin(), wraps.end(), [&](const auto& wrap) {
           return wrap.kind != Wrapper::data_parallel ||
                  facts::only_without_distribution(program, wrap.call.ref());
         });
}

// Under Lightning's "dp" the steps run in the replicas, and their loops over parameters do nothing.
void check_steps_of_replicas(const Program& program, Report& report) {
  for (const FunctionRef& method : steps_of_replicas(program))
    for (const CallRef& call : facts::calls_in({method.module, method.function->body}))
      if (asks_for_own_parameters(call) && !is_handed_on(program, call) && !is_fallback(call))
        report
            .at(call.ref(), Confidence::likely,
                std::string(call.receiver().text()) + "." + std::string(call.call->name) +
                    "() is empty in the replicas that run the steps under strategy \"dp\": a loop "
                    "over it does nothing, and next(...) raises StopIteration")
            .help = "Use strategy=\"ddp\", or do it in a hook: on_train_batch_end().";
}

void tell_of_methods(const Program& program, const std::vector<FunctionRef>& methods,
                     Report& report) {
  const Confidence confidence =
      is_left_over_mode(program) ? Confidence::likely : Confidence::certain;
  for (const FunctionRef& method : methods)
    for (const CallRef& call : facts::calls_in({method.module, method.function->body})) {
      if (!asks_for_own_parameters(call) || is_handed_on(program, call) || is_fallback(call))
        continue;
      report
          .at(call.ref(), confidence,
              std::string(call.receiver().text()) + "." + std::string(call.call->name) +
                  (takes_the_first(program, call)
                       ? "() is empty in DataParallel's replicas: next(...) raises StopIteration"
                       : "() is empty in DataParallel's replicas: what goes over it does nothing"))
          .help = "Use x.device and x.dtype of an input, or a buffer.";
    }
}

}  // namespace

void check_parameters_empty_in_replica(const Program& program, Report& report) {
  check_steps_of_replicas(program, report);
  if (!program.has_data_parallel()) return;
  for (const ClassRef& cls : facts::wrapped_classes(program, Wrapper::data_parallel)) {
    std::vector<FunctionRef> methods = facts::forward_methods(program, cls);
    // Properties that forward reads: self.device, self.dtype.
    const std::size_t called = methods.size();
    for (const std::string_view property : {"device", "dtype"}) {
      const FunctionRef getter = program.method(cls, property);
      if (!getter) continue;
      const std::string wanted = "self." + std::string(property);
      for (std::size_t i = 0; i < called; ++i)
        if (facts::contains(methods[i].module->text(methods[i].function->body), wanted)) {
          methods.push_back(getter);
          break;
        }
    }
    tell_of_methods(program, methods, report);
  }
}

}  // namespace bench::pitfalls
