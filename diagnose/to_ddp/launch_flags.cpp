#include "diagnose/to_ddp/launch_flags.hpp"

#include "diagnose/to_ddp/gpu_uses.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"

#include <algorithm>

namespace bench::diagnose {
namespace {

using pitfalls::says_any;

constexpr int kNames = 3;  // use_gpu = args.cuda and torch.cuda.is_available()

std::string long_name_of(const Program& program, const CallRef& option) {
  for (std::size_t i = 0; const Ref word = option.positional(i); ++i)
    if (auto name = program.string(word); name && name->starts_with("--")) return *name;
  return {};
}

bool is_switch(const Program& program, const CallRef& option) {
  const auto action = program.string(option.keyword("action"));
  return action == "store_true" ||
         (action == "store_const" && program.is_literal_true(option.keyword("const")));
}

// The option with the value that turns it on; empty where it is on already, or chooses one of many.
std::string turned_on(const Program& program, const CallRef& option) {
  const std::string name = long_name_of(program, option);
  if (name.empty() || !says_any(name, {"gpu", "cuda", "parallel"}) ||
      says_any(name, {"no_", "no-", "not", "disable", "cpu"}))
    return {};
  if (is_switch(program, option)) return name;
  const Ref value = option.keyword("default");
  if (!value || value.text() != "False") return {};
  return option.keyword("type") ? name + " True" : std::string();
}

void add(std::vector<std::string>& flags, std::string flag) {
  if (!flag.empty() && std::find(flags.begin(), flags.end(), flag) == flags.end())
    flags.push_back(std::move(flag));
}

class Flags {
 public:
  explicit Flags(const Program& program) : program_(program) {}

  // The options that have to be given for the condition to hold.
  void need(Ref condition, int names) {
    if (!condition || names < 0) return;
    const auto& tree = condition.module->tree();
    if (condition.kind() == Kind::boolean && tree[condition.node].op == Op::logical_and) {
      need(condition.child(Field::left), names);
      need(condition.child(Field::right), names);
      return;
    }
    if (condition.kind() != Kind::identifier && condition.kind() != Kind::attribute) return;
    // Of `args.cuda and torch.cuda.is_available()` both parts.
    for (const Source& source : program_.sources(condition))
      if (source.how == Source::How::argument)
        add(flags_, turned_on(program_, program_.as_call(source.ref)));
      else if (source.how == Source::How::value && source.ref != condition)
        need(source.ref, names - 1);
  }

  std::vector<std::string> take() { return std::move(flags_); }

 private:
  const Program& program_;
  std::vector<std::string> flags_;
};

bool is_gpu(std::string_view text) { return text.find("cuda") != std::string_view::npos; }

}  // namespace

std::string launch_flag_of(const Program& program, Ref condition) {
  const auto& sources = program.sources(condition);
  if (sources.size() != 1 || sources.front().how != Source::How::argument) return {};
  const CallRef option = program.as_call(sources.front().ref);
  return option && program.string(option.keyword("action")) == "store_true"
             ? long_name_of(program, option)
             : std::string();
}

std::vector<std::string> flags_of_gpu(const Program& program) {
  Flags flags(program);
  for (const CallRef& use : gpu_uses(program))
    for (const Guard& guard : program.guards(use.ref()))
      if (guard.holds) flags.need(guard.condition, kNames);
  for (const Module* module : program.modules()) {
    const auto& tree = module->tree();
    if (!tree.holds("cuda")) continue;
    for (NodeId node = 0; node < tree.size(); ++node) {
      const Ref choice{module, node};
      if (choice.kind() != Kind::conditional || !is_gpu(choice.text()) ||
          !pitfalls::facts::is_reachable(program, choice))
        continue;
      const Ref first = choice.with(tree[node].first_child);
      // value, condition and the other value: they have no names
      if (is_gpu(first.text())) flags.need(choice.with(tree[first.node].next_sibling), kNames);
    }
  }
  return flags.take();
}

}  // namespace bench::diagnose
