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

// --cuda, --use_gpu, --multi-gpu: for all that the script does, and not for --gpu_cache.
bool is_for_everything(std::string_view flag) {
  for (const std::string& word : pitfalls::words_of_name(flag.substr(0, flag.find(' '))))
    if (word != "cuda" && word != "gpu" && word != "gpus" && word != "use" && word != "multi" &&
        word != "data" && word != "parallel" && word != "enable" && word != "with" && word != "on")
      return false;
  return true;
}

// if args.test_gpu: print(torch.zeros(1).cuda()); return
bool ends_there(Ref use, Ref condition) {
  const auto& tree = condition.module->tree();
  const NodeId test = tree.ancestor(condition.node, Kind::if_statement);
  const NodeId block = test == kNoNode ? kNoNode : tree.child(test, Field::consequence);
  if (block == kNoNode || !tree.contains(block, use.node)) return false;
  for (NodeId at = tree[block].first_child; at != kNoNode; at = tree[at].next_sibling)
    if (tree[at].kind == Kind::return_statement || tree[at].kind == Kind::raise_statement ||
        pitfalls::facts::ends_process({condition.module, at}))
      return true;
  return false;
}

class Flags {
 public:
  explicit Flags(const Program& program) : program_(program) {}

  // Of the tests around what is put on a GPU: `places` it is the model, or its wrapper.
  void need_around(Ref use, bool places) {
    places_ = places;
    for (const Guard& guard : program_.guards(use))
      if (guard.holds && !ends_there(use, guard.condition)) need(guard.condition, kNames);
  }

  // device = "cuda" if args.cuda else "cpu"
  void need_for_choice(Ref choice, Ref condition) {
    const auto& tree = choice.module->tree();
    const NodeId setting = tree.ancestor(choice.node, Kind::assignment);
    places_ =
        setting != kNoNode && says_any(tree.text(tree.child(setting, Field::left)), {"device"});
    need(condition, kNames);
  }

  std::vector<std::string> take() { return std::move(flags_); }

 private:
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
        take_option(program_.as_call(source.ref));
      else if (source.how == Source::How::value && source.ref != condition)
        need(source.ref, names - 1);
  }

  void take_option(const CallRef& option) {
    const std::string flag = turned_on(program_, option);
    if (!flag.empty() && (places_ || is_for_everything(flag))) add_once(flags_, flag);
  }

  const Program& program_;
  bool places_ = false;
  std::vector<std::string> flags_;
};

bool is_gpu(std::string_view text) { return text.find("cuda") != std::string_view::npos; }

}  // namespace

void add_once(std::vector<std::string>& flags, const std::string& flag) {
  if (std::find(flags.begin(), flags.end(), flag) == flags.end()) flags.push_back(flag);
}

std::string launch_flag_of(const Program& program, Ref condition) {
  const auto& sources = program.sources(condition);
  if (sources.size() != 1 || sources.front().how != Source::How::argument) return {};
  const CallRef option = program.as_call(sources.front().ref);
  return option && is_switch(program, option) ? long_name_of(program, option) : std::string();
}

std::vector<std::string> flags_of_gpu(const ReachedCode& reached) {
  const Program& program = reached.program();
  Flags flags(program);
  for (const Wrap& wrap : program.wraps()) {
    if (!reached.comes_by(wrap.call.ref())) continue;
    flags.need_around(wrap.call.ref(), true);
    for (const CallRef& place : pitfalls::facts::placements(program, wrap))
      flags.need_around(place.ref(), true);
  }
  for (const CallRef& use : gpu_uses(reached)) flags.need_around(use.ref(), false);
  for (const Module* module : program.modules()) {
    const auto& tree = module->tree();
    if (!tree.holds("cuda")) continue;
    for (NodeId node = 0; node < tree.size(); ++node) {
      const Ref choice{module, node};
      if (choice.kind() != Kind::conditional || !is_gpu(choice.text()) || !reached.comes_by(choice))
        continue;
      const Ref first = choice.with(tree[node].first_child);
      // value, condition and the other value: they have no names
      if (is_gpu(first.text()))
        flags.need_for_choice(choice, choice.with(tree[first.node].next_sibling));
    }
  }
  return flags.take();
}

}  // namespace bench::diagnose
