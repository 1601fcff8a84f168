#include "scenarios/pitfalls/ranks/device_as_word.hpp"

#include "scenarios/pitfalls/program/facts.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Field;
using diagnose::Guard;
using diagnose::Kind;
using diagnose::kNoNode;
using diagnose::NodeId;
using diagnose::Op;
using diagnose::Source;

namespace {

// device in `device != "cpu"` that holds, and in `device == "cpu"` that does not.
Ref compared_with_cpu(const Program& program, const Guard& guard) {
  const Ref test = guard.condition;
  if (test.kind() != Kind::comparison) return {};
  const auto& tree = test.module->tree();
  const Op op = tree[test.node].op;
  if (tree.child_count(test.node) != 2 || op != (guard.holds ? Op::not_equal : Op::equal))
    return {};
  const Ref left = test.with(tree.child_at(test.node, 0));
  const Ref right = test.with(tree.child_at(test.node, 1));
  if (right.kind() == Kind::string && program.string(right) == "cpu") return left;
  return left.kind() == Kind::string && program.string(left) == "cpu" ? right : Ref{};
}

bool names_cpu(const Program& program, Ref name) {
  const auto& sources = program.sources(name);
  return std::any_of(sources.begin(), sources.end(), [&](const Source& source) {
    return source.how == Source::How::value && source.ref.kind() == Kind::string &&
           program.string(source.ref) == "cpu";
  });
}

// Always a torch.device, and that of the CPU in one of the ways here.
bool is_device_and_may_be_cpu(const Program& program, Ref device) {
  if (device.kind() != Kind::identifier) return false;
  bool may_be_cpu = false;
  for (const Source& source : program.sources(device)) {
    const CallRef made = program.as_call(source.ref);
    if (source.how != Source::How::value || !made || made.call->api != Api::torch_device)
      return false;
    may_be_cpu = may_be_cpu || names_cpu(program, made.positional(0));
  }
  return may_be_cpu;
}

// assert torch.cuda.is_available(), or all of it in a branch of such a test.
bool needs_gpu(const Program& program, Ref node) {
  const auto calls = program.calls_named("is_available");
  if (std::any_of(calls.begin(), calls.end(), [](const CallRef& call) {
        const NodeId parent = call.module->tree()[call.call->node].parent;
        return parent != kNoNode && call.module->tree()[parent].kind == Kind::assert_statement;
      }))
    return true;
  return program.under(node, [](Ref condition, bool) {
    return facts::contains(condition.text(), "cuda") || facts::contains(condition.text(), "gpu");
  });
}

Ref idle_test_around(const Program& program, Ref node) {
  for (const Guard& guard : program.guards(node)) {
    const Ref device = compared_with_cpu(program, guard);
    if (device && is_device_and_may_be_cpu(program, device)) return guard.condition;
  }
  return {};
}

}  // namespace

Ref idle_test_for_cpu(const Program& program, const diagnose::Wrap& wrap, Ref ids) {
  if (!program.mentions("gloo") || needs_gpu(program, wrap.call.ref())) return {};
  for (const Source& source : program.sources(ids))
    if (source.how == Source::How::value && source.ref.kind() == Kind::list)
      if (const Ref test = idle_test_around(program, source.ref)) return test;
  return {};
}

}  // namespace bench::pitfalls
