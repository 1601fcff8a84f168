#include "scenarios/pitfalls/ranks/gpu_tests.hpp"

#include "diagnose/model/made_at.hpp"
#include "scenarios/pitfalls/program/facts.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Field;
using diagnose::Kind;
using diagnose::Op;
using diagnose::Source;

namespace {

constexpr int kTestDepth = 6;

// torch.cuda.is_available(), use_cuda after use_cuda = torch.cuda.is_available(), and either of
// them with more that has to hold.
bool needs_gpus(const Program& program, Ref condition, int depth = 0) {
  if (!condition || depth > kTestDepth) return false;
  if (condition.kind() == Kind::boolean &&
      condition.module->tree()[condition.node].op == Op::logical_and)
    return needs_gpus(program, condition.child(Field::left), depth + 1) ||
           needs_gpus(program, condition.child(Field::right), depth + 1);
  if (const CallRef call = program.as_call(condition))
    return call.call->api == diagnose::Api::cuda_is_available;
  if (condition.kind() != Kind::identifier && condition.kind() != Kind::attribute) return false;
  const auto sources = program.sources(condition);
  return !sources.empty() && std::all_of(sources.begin(), sources.end(), [&](const Source& source) {
    return source.how == Source::How::value && source.ref != condition &&
           needs_gpus(program, source.ref, depth + 1);
  });
}

// What device.type == "cpu" and device.type != "cuda" say where they hold.
enum class Asked : std::uint8_t { nothing, cpu, gpu };

Asked asked_of_type(Ref condition) {
  const auto& tree = condition.module->tree();
  if (condition.kind() != Kind::comparison || tree.child_count(condition.node) != 2)
    return Asked::nothing;
  const Ref left = condition.with(tree.child_at(condition.node, 0));
  const auto name = tree.string_value(tree.child_at(condition.node, 1));
  const Op op = tree[condition.node].op;
  const bool is_kind = name == "cpu" || name == "cuda" || name == "gloo" || name == "nccl";
  const std::string asked = facts::lowered(left.text());
  if (!is_kind || (op != Op::equal && op != Op::not_equal) ||
      !(facts::contains(asked, "device") || facts::contains(asked, "backend")))
    return Asked::nothing;
  const bool of_cpu = name == "cpu" || name == "gloo";
  return of_cpu == (op == Op::equal) ? Asked::cpu : Asked::gpu;
}

}  // namespace

bool only_without_gpus(const Program& program, Ref node) {
  return program.under(node, [&](Ref condition, bool holds) {
    while (condition.kind() == Kind::not_expression) {
      condition = condition.child(Field::argument);
      holds = !holds;
    }
    const Asked asked = asked_of_type(condition);
    if (asked != Asked::nothing) return holds == (asked == Asked::cpu);
    return !holds && needs_gpus(program, condition);
  });
}

namespace {

// torch.cuda.device_count() > 1, gpus > 1 and a flag that is given such a comparison.
bool asks_for_several_gpus(const Program& program, Ref condition) {
  const auto compares = [&](Ref value) {
    const auto& tree = value.module->tree();
    if (value.kind() != Kind::comparison || tree.child_count(value.node) != 2 ||
        tree[value.node].op != Op::greater || tree.text(tree.child_at(value.node, 1)) != "1")
      return false;
    const CallRef count = program.made_by(value.with(tree.child_at(value.node, 0)));
    return count && count.call->name == "device_count";
  };
  if (compares(condition)) return true;
  if (condition.kind() != Kind::identifier && condition.kind() != Kind::attribute) return false;
  const auto& sources = program.sources(condition);
  return !sources.empty() && std::all_of(sources.begin(), sources.end(), [&](const Source& source) {
    return source.how == Source::How::value && compares(source.ref);
  });
}

}  // namespace

bool is_made_for_one_gpu(const Program& program, const diagnose::Wrap& wrap) {
  const auto guards = diagnose::guards_where_made(program, wrap.call);
  return std::any_of(guards.begin(), guards.end(), [&](const diagnose::Guard& guard) {
    const bool is_not = guard.condition.kind() == Kind::not_expression;
    const Ref asked = is_not ? guard.condition.child(Field::argument) : guard.condition;
    return guard.holds == is_not && asks_for_several_gpus(program, asked);
  });
}

}  // namespace bench::pitfalls
