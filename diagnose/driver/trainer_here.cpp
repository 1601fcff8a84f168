#include "diagnose/driver/trainer_here.hpp"

#include "scenarios/pitfalls/program/facts.hpp"

#include <algorithm>

namespace bench::diagnose {
namespace {

namespace trainer = pitfalls::trainer;
using pitfalls::facts::contains;
using Type = Value::Type;

constexpr int kDeepest = 4;  // names and conditions followed

Value text_value(std::string text) {
  Value value;
  value.type = Type::string;
  value.string = std::move(text);
  return value;
}

Value integer_value(std::int64_t integer) {
  Value value;
  value.type = Type::integer;
  value.integer = integer;
  return value;
}

class Reader {
 public:
  Reader(const Program& program, const TrainerMachine& machine)
      : program_(program), machine_(machine) {}

  Value read(Ref node, int depth = 0) const {
    Value value = program_.evaluate(node);
    if (value.known() || depth > kDeepest) return value;
    if (node.kind() == Kind::conditional) {
      const auto& tree = node.module->tree();  // value, condition, other value
      const auto holds = asks_for_gpus(node.with(tree.child_at(node.node, 1)), depth);
      if (!holds) return value;
      return read(node.with(tree.child_at(node.node, *holds ? 0 : 2)), depth + 1);
    }
    if (const CallRef call = program_.as_call(node)) return of_call(call);
    const auto& sources = program_.sources(node);
    if (const Ref choice = one_choice(sources); choice && choice != node)
      return read(choice, depth + 1);
    if (sources.size() != 1 || sources.front().how != Source::How::value ||
        sources.front().ref == node)
      return value;
    return read(sources.front().ref, depth + 1);
  }

 private:
  // The conditional expression whose two values these are.
  static Ref one_choice(const std::vector<Source>& sources) {
    if (sources.size() != 2 || sources[0].ref.module != sources[1].ref.module) return {};
    const auto& tree = sources[0].ref.module->tree();
    const NodeId choice = tree[sources[0].ref.node].parent;
    if (choice == kNoNode || tree[choice].kind != Kind::conditional ||
        tree[sources[1].ref.node].parent != choice)
      return {};
    return sources[0].ref.with(choice);
  }

  bool has_gpus() const { return machine_.visible_gpus.value_or(1) > 0; }

  // What `torch.cuda.is_available()` says, also by a name and after `not`.
  std::optional<bool> asks_for_gpus(Ref condition, int depth) const {
    if (!condition || depth > kDeepest) return std::nullopt;
    if (condition.kind() == Kind::not_expression) {
      const auto inner = asks_for_gpus(condition.child(Field::argument), depth + 1);
      return inner ? std::optional(!*inner) : std::nullopt;
    }
    const CallRef call = program_.as_call(condition);
    if (call)
      return call.call->name == "is_available" && contains(condition.text(), "cuda")
                 ? std::optional(has_gpus())
                 : std::nullopt;
    const auto& sources = program_.sources(condition);
    if (sources.size() != 1 || sources.front().ref == condition) return std::nullopt;
    return asks_for_gpus(sources.front().ref, depth + 1);
  }

  // DDPStrategy(find_unused_parameters=True) starts processes as "ddp" does.
  Value of_call(const CallRef& call) const {
    static constexpr std::pair<std::string_view, std::string_view> kStrategies[] = {
        {"DDPStrategy", "ddp"},
        {"DDPSpawnStrategy", "ddp_spawn"},
        {"DataParallelStrategy", "dp"},
        {"FSDPStrategy", "fsdp"},
        {"DeepSpeedStrategy", "deepspeed"}};
    for (const auto& [name, strategy] : kStrategies)
      if (call.call->name == name) return text_value(std::string(strategy));
    if (call.call->api == Api::device_count)
      return integer_value(machine_.visible_gpus.value_or(-1));
    return {};
  }

  const Program& program_;
  const TrainerMachine& machine_;
};

}  // namespace

trainer::Use use_on(const Program& program, const trainer::Use& use,
                    const TrainerMachine& machine) {
  trainer::Use out = use;
  for (trainer::Argument& argument : out.arguments)
    if (!argument.value.known() && argument.node)
      argument.value = Reader(program, machine).read(argument.node);
  return out;
}

}  // namespace bench::diagnose
