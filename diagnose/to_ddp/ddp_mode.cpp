#include "diagnose/to_ddp/ddp_mode.hpp"

#include "scenarios/pitfalls/program/words.hpp"

#include <algorithm>
#include <optional>

namespace bench::diagnose {
namespace {

using pitfalls::says_any;

constexpr std::size_t kLongestSetting = 48;  // characters of a condition that is quoted

class Mode {
 public:
  Mode(const Program& program, const ReachedCode& reached) : program_(program), reached_(reached) {}

  std::string text() const {
    const auto joins = program_.calls(Api::init_process_group);
    if (const CallRef join = first_reached({joins.begin(), joins.end()}))
      return "joins a process group already " + place_in_brackets(program_, join.ref()) + how(join);
    std::vector<CallRef> wraps;
    for (const Wrap& wrap : program_.wraps())
      if (wrap.kind == Wrapper::ddp) wraps.push_back(wrap.call);
    const CallRef wrap = first_reached(wraps);
    if (!wrap) return {};
    const std::string wrapped =
        "wraps in DistributedDataParallel already " + place_in_brackets(program_, wrap.ref());
    if (may_join_unseen()) return wrapped + how(wrap);
    return wrapped + ", and joins no process group: call torch.distributed.init_process_group() " +
           "above it" + chosen(wrap) + ", and start it with torchrun";
  }

 private:
  // Of the script's own calls before those of its helpers.
  CallRef first_reached(const std::vector<CallRef>& calls) const {
    CallRef out;
    for (const CallRef& call : calls) {
      if (!reached_.has(call)) continue;
      if (!out || (out.module != &program_.root() && call.module == &program_.root())) out = call;
    }
    return out;
  }

  bool is_told_to(const CallRef& call) const {
    return !program_.callee(call) && !program_.class_of_call(call) && call.call->api == Api::none &&
           says_any(call.call->name,
                    {"dist", "ddp", "init_process", "setup", "launch", "prepare"}) &&
           !says_any(call.call->name, {"distance", "distribution", "distill"});
  }

  // setup_distributed() of a file that is not there, or a framework.
  bool may_join_unseen() const {
    if (program_.framework_distributes()) return true;
    for (const Module* module : program_.modules())
      for (const Call& call : module->calls())
        if (is_told_to({module, &call}) && reached_.has({module, call.node})) return true;
    return false;
  }

  // Places from the node up to the script's own level.
  std::vector<Ref> way_to(Ref node) const {
    std::vector<Ref> way = reached_.way_to(node);
    way.insert(way.begin(), node);
    return way;
  }

  // mp.spawn(work) or Process(target=work) leads to the call.
  bool starts_ranks_itself(const CallRef& call) const {
    const std::vector<Ref> way = way_to(call.ref());
    return std::any_of(way.begin(), way.end(), [&](Ref place) {
      const FunctionRef function = program_.enclosing_function(place);
      if (function && (program_.is_spawned(function) || program_.runs_in_ranks(function)))
        return true;
      const auto& tree = place.module->tree();
      const CallRef around = program_.as_call(place.with(tree.ancestor(place.node, Kind::call)));
      return around &&
             (around.call->api == Api::spawn || around.call->name == "Process" ||
              around.call->name == "start_processes" || around.call->name == "spawn") &&
             !tree.contains(around.call->function, place.node);
    });
  }

  std::string how(const CallRef& call) const {
    return (starts_ranks_itself(call) ? ": start it with python, as it starts its ranks itself"
                                      : ": start it with torchrun") +
           chosen(call);
  }

  // What opens the branches on the way, the outermost that speaks of ranks.
  std::string chosen(const CallRef& call) const {
    std::optional<std::string> out;
    for (const Ref place : way_to(call.ref()))
      for (const Guard& guard : program_.guards(place))
        if (auto setting = setting_of(guard)) out = std::move(setting);
    return out ? ", " + *out : std::string();
  }

  std::optional<std::string> setting_of(const Guard& guard) const {
    const Ref condition = guard.condition;
    const std::string_view text = condition.text();
    if (program_.rank_test(condition) != RankTest::none ||
        says_any(text, {"__name__", "is_available", "is_initialized", "device_count", "environ"}))
      return {};
    const bool speaks = program_.is_distributed_flag(condition) ||
                        says_any(text, {"dist", "ddp", "parallel", "multi", "world_size", "launch",
                                        "n_gpu", "num_gpu", "ngpu"});
    if (!speaks) return {};
    if (auto option = option_in(condition); option && !says_any(*option, {"rank"}))
      return "in the mode that " + *option + " chooses";
    if (text.size() > kLongestSetting || text.find('\n') != std::string_view::npos) return {};
    return "where `" + std::string(text) + (guard.holds ? "` holds" : "` does not hold");
  }

  std::optional<std::string> option_in(Ref condition) const {
    const auto& tree = condition.module->tree();
    for (NodeId id = condition.node; id < tree[condition.node].last; ++id) {
      const Kind kind = tree[id].kind;
      if (kind != Kind::attribute && kind != Kind::identifier) continue;
      for (const Source& source : program_.sources(condition.with(id)))
        if (auto option = option_behind(source)) return option;
    }
    return {};
  }

  // Of args.distributed, and of getattr(args, "distributed").
  std::optional<std::string> option_behind(const Source& source) const {
    const CallRef made = program_.as_call(source.ref);
    if (source.how == Source::How::argument) return name_of(made);
    if (source.how != Source::How::value || !made || made.call->name != "getattr") return {};
    const auto name = program_.string(made.positional(1));
    if (!name) return {};
    const auto& options = program_.options_named(*name);
    return options.empty() ? std::nullopt : name_of(options.front());
  }

  std::optional<std::string> name_of(const CallRef& option) const {
    std::optional<std::string> out;
    for (std::size_t index = 0; option && option.positional(index); ++index) {
      const auto name = program_.string(option.positional(index));
      if (name && name->starts_with("-") && (!out || !out->starts_with("--"))) out = name;
    }
    return out;
  }

  const Program& program_;
  const ReachedCode& reached_;
};

}  // namespace

std::string place_in_brackets(const Program& program, Ref node) {
  const std::string line = std::to_string(node.module->tree().line_of(node.node));
  return node.module == &program.root() ? "(line " + line + ")"
                                        : "(" + node.module->path() + ":" + line + ")";
}

std::string existing_ddp_mode(const Program& program, const ReachedCode& reached) {
  return Mode(program, reached).text();
}

}  // namespace bench::diagnose
