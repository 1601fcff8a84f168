// Lines that only a run of one process comes by: the branch without the option that joins the
// group, or what an assertion of one process guards.
#include "diagnose/model/role_names.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/reach/certainty.hpp"

#include <algorithm>
#include <cstdint>

namespace bench::pitfalls::facts {

using diagnose::Api;
using diagnose::Field;
using diagnose::FunctionRef;
using diagnose::Kind;
using diagnose::kNoNode;
using diagnose::NodeId;
using diagnose::Source;

namespace {

// args["horovod"], use_hvd: the option by its name, and not a question to the library.
bool is_horovod_flag(const Program& program, Ref condition) {
  const std::string name = lowered(diagnose::last_word(condition));
  return program.uses(Api::hvd_init) && (contains(name, "horovod") || contains(name, "hvd")) &&
         !contains(name, "no_");
}

// Where the program joins a process group; where that is done out of sight, it wraps models there.
std::vector<CallRef> joins_of(const Program& program) {
  const auto groups = program.calls(Api::init_process_group);
  const auto joins = groups.empty() ? program.calls(Api::hvd_init) : groups;
  std::vector<CallRef> out(joins.begin(), joins.end());
  if (!out.empty()) return out;
  for (const diagnose::Wrap& wrap : program.wraps())
    if (wrap.kind == diagnose::Wrapper::ddp) out.push_back(wrap.call);
  return out;
}

// if gpus > 1 and cfg.DIST_TRAIN, for cfg.DIST_TRAIN.
bool asks_for(Ref asked, Ref flag) {
  const auto is_flag = [&](Ref part) {
    return part.kind() == flag.kind() && part.text() == flag.text();
  };
  // `a and b and c` is (a and b) and c.
  for (; asked && !is_flag(asked); asked = asked.child(Field::left)) {
    if (asked.kind() != Kind::boolean ||
        asked.module->tree()[asked.node].op != diagnose::Op::logical_and)
      return false;
    if (is_flag(asked.child(Field::right))) return true;
  }
  return static_cast<bool>(asked);
}

// parallel for `parallel == True`.
Ref plain_flag(const Program& program, Ref condition) {
  const auto& tree = condition.module->tree();
  const diagnose::Op op = tree[condition.node].op;
  if (condition.kind() != Kind::comparison || tree.child_count(condition.node) != 2 ||
      (op != diagnose::Op::equal && op != diagnose::Op::is) ||
      !program.is_literal_true(condition.with(tree.child_at(condition.node, 1))))
    return condition;
  return condition.with(tree.child_at(condition.node, 0));
}

// if cfg.DIST_TRAIN: init_process_group(...): the option without which no group is ever joined.
bool decides_on_group(const Program& program, Ref asked) {
  const Ref condition = plain_flag(program, asked);
  if (is_horovod_flag(program, condition)) return true;
  const std::vector<CallRef> joins = joins_of(program);
  if (joins.empty() || condition.kind() == Kind::comparison) return false;
  return std::all_of(joins.begin(), joins.end(), [&](const CallRef& join) {
    return program.under(join.ref(), [&](Ref other, bool holds) {
      return holds && asks_for(plain_flag(program, other), condition);
    });
  });
}

// if args.parallel: init_process_group(...); parallel = True else: parallel = False: the flag holds
// where the group was joined.
bool is_set_with_group(const Program& program, Ref flag) {
  if (flag.kind() != Kind::identifier && flag.kind() != Kind::attribute) return false;
  const auto joins = program.calls(Api::init_process_group);
  bool set = false;
  bool unset = false;
  for (const Source& source : program.sources(flag)) {
    if (program.is_literal_false(source.ref)) {
      unset = true;
      continue;
    }
    const auto around = program.guards(source.ref);
    if (!program.is_literal_true(source.ref) || around.empty() ||
        std::none_of(joins.begin(), joins.end(), [&](const CallRef& join) {
          const auto guards = program.guards(join.ref());
          return !guards.empty() && guards.front().condition == around.front().condition &&
                 guards.front().holds == around.front().holds;
        }))
      return false;
    set = true;
  }
  return set && unset;
}

// What a comparison of a rank or of a number of processes says of a run of one process.
enum class OneProcess : std::uint8_t { silent, holds, fails };

// The option without which a run is one process: local_rank is None, distributed == False.
OneProcess asks_whether_given(const Program& program, Ref left, Ref right, diagnose::Op op) {
  using diagnose::Op;
  const bool is_rank = contains(lowered(diagnose::last_word(left)), "rank");
  const bool absent =
      is_rank ? right.kind() == Kind::none_literal : program.is_literal_false(right);
  if (!absent) return OneProcess::silent;
  if (op == Op::is || op == Op::equal) return OneProcess::holds;
  return op == Op::is_not || op == Op::not_equal ? OneProcess::fails : OneProcess::silent;
}

// local_rank < 0, local_rank == -1, world_size == 1, num_gpus > 1. Which of several ranks it is,
// as in local_rank == 0, is another question.
OneProcess asks_for_one_process(const Program& program, Ref condition) {
  using diagnose::Op;
  const auto& tree = condition.module->tree();
  if (tree.child_count(condition.node) != 2) return OneProcess::silent;
  const Ref left = condition.with(tree.child_at(condition.node, 0));
  const Ref right = condition.with(tree.child_at(condition.node, 1));
  const Op op = tree[condition.node].op;
  const auto value = program.integer(right);
  if (!value) return asks_whether_given(program, left, right, op);
  const std::string text = lowered(left.text());
  const bool of_devices = contains(text, "gpu") || contains(text, "device_count");
  // The most that a process alone has: the rank -1, or the size 1.
  const bool is_rank = contains(lowered(diagnose::last_word(left)), "rank");
  const std::int64_t alone = is_rank ? -1 : 1;
  const bool says_alone = *value == alone || (*value == 0 && of_devices);
  switch (op) {
    case Op::equal:
    case Op::less_equal:
      return says_alone ? OneProcess::holds : OneProcess::silent;
    case Op::less:
      return *value == alone + 1 ? OneProcess::holds : OneProcess::silent;
    case Op::not_equal:
    case Op::greater:
      return *value == alone ? OneProcess::fails : OneProcess::silent;
    case Op::greater_equal:
      return *value == alone + 1 ? OneProcess::fails : OneProcess::silent;
    default:
      return OneProcess::silent;
  }
}

// RANK == -1, after RANK = int(os.getenv("RANK", -1)).
bool compares_rank(const Program& program, Ref comparison) {
  const auto& tree = comparison.module->tree();
  return tree.child_count(comparison.node) == 2 &&
         program.integer(comparison.with(tree.child_at(comparison.node, 1))) == -1 &&
         program.is_rank(comparison.with(tree.child_at(comparison.node, 0)));
}

// accelerator.num_processes > 1
bool compares_processes(const Program& program, Ref comparison) {
  const auto& tree = comparison.module->tree();
  return tree.child_count(comparison.node) == 2 &&
         program.is_world_size(comparison.with(tree.child_at(comparison.node, 0)));
}

// assert world_size == 1 above the node, in a block that holds it.
bool asserts_one_process(const Program& program, Ref node) {
  const auto& tree = node.module->tree();
  for (NodeId at = node.node; at != kNoNode; at = tree[at].parent) {
    const NodeId block = tree[at].parent;
    if (tree[at].kind == Kind::function || block == kNoNode) return false;
    for (NodeId above = tree[block].first_child; above != at; above = tree[above].next_sibling) {
      if (tree[above].kind != Kind::assert_statement) continue;
      const Ref claim = node.with(tree[above].first_child);
      if (claim.kind() != Kind::comparison || tree[claim.node].op != diagnose::Op::equal) continue;
      const Ref left = claim.with(tree.child_at(claim.node, 0));
      const Ref right = claim.with(tree.child_at(claim.node, 1));
      if (right.text() == "1" && program.is_world_size(left)) return true;
    }
  }
  return false;
}

bool counts_gpus_by_name(std::string_view name) {
  for (const std::string_view each : {"num_gpus", "n_gpus", "n_gpu", "ngpus", "num_gpu", "nproc",
                                      "num_processes", "nprocs_per_node"})
    if (name == each) return true;
  return false;
}

// writes = True below such an assertion, and `if writes:` around the node.
bool is_set_in_one_process(const Program& program, Ref flag) {
  if (flag.kind() != Kind::identifier) return false;
  bool set = false;
  for (const Source& source : program.sources(flag)) {
    if (program.is_literal_false(source.ref)) continue;
    if (!program.is_literal_true(source.ref) || !asserts_one_process(program, source.ref))
      return false;
    set = true;
  }
  return set;
}

constexpr int kCallers = 4;
constexpr std::size_t kWays = 64;  // a helper of a large program is called from everywhere

// The places of the function that lead to the node, through its callers and what hands them on, as
// mp.spawn(worker) does. False where some way does not come by the function, or they are too many.
bool add_ways(const Program& program, FunctionRef from, Ref node, int depth,
              std::vector<Ref>& ways) {
  const FunctionRef function = program.enclosing_function(node);
  if (function == from) {
    ways.push_back(node);
    return true;
  }
  if (!function || depth > kCallers || ways.size() >= kWays) return false;
  std::vector<Ref> places = program.handed_on(function);
  for (const CallRef& site : program.call_sites(function)) places.push_back(site.ref());
  return !places.empty() && std::all_of(places.begin(), places.end(), [&](Ref place) {
    return add_ways(program, from, place, depth + 1, ways);
  });
}

// if mode == "baseline": baseline() elif mode == "ddp": together(), called by this function: no run
// that joins a group comes by the node.
bool chooses_another_mode(const Program& program, FunctionRef chooser, Ref node) {
  std::vector<Ref> here;
  std::vector<Ref> there;
  if (!add_ways(program, chooser, node, 0, here)) return false;
  for (const CallRef& join : program.calls(Api::init_process_group))
    if (!add_ways(program, chooser, join.ref(), 0, there)) return false;
  return std::all_of(here.begin(), here.end(), [&](Ref mine) {
    return std::all_of(there.begin(), there.end(),
                       [&](Ref other) { return exclusive(mine, other); });
  });
}

// What the process does that calls mp.spawn is another question (only_in_parent).
bool is_in_another_mode(const Program& program, Ref node) {
  if (program.calls(Api::init_process_group).empty() || program.framework_distributes() ||
      program.uses(Api::spawn))
    return false;
  FunctionRef function = program.enclosing_function(node);
  for (int depth = 0; function && depth < kCallers; ++depth) {
    const auto& sites = program.call_sites(function);
    if (sites.empty()) return false;
    const FunctionRef caller = program.enclosing_function(sites.front().ref());
    if (caller == function) return false;
    if (caller && chooses_another_mode(program, caller, node)) return true;
    function = caller;
  }
  return false;
}

}  // namespace

bool claims_one_process(const Program& program) {
  const diagnose::Module& root = program.root();
  const auto& tree = root.tree();
  const auto& claims = root.nodes_of(Kind::assert_statement);
  return std::any_of(claims.begin(), claims.end(), [&](NodeId node) {
    const Ref claim{&root, tree[node].first_child};
    if (claim.kind() != Kind::comparison || tree[claim.node].op != diagnose::Op::equal ||
        tree.child_count(claim.node) != 2 || program.enclosing_function(claim))
      return false;
    const auto guards = program.guards(claim);
    const Ref left = claim.with(tree.child_at(claim.node, 0));
    return claim.with(tree.child_at(claim.node, 1)).text() == "1" &&
           std::all_of(guards.begin(), guards.end(),
                       [](const diagnose::Guard& guard) {
                         return contains(guard.condition.text(), "__name__");
                       }) &&
           // n_gpu of Hugging Face's scripts counts the GPUs of one process.
           (program.is_world_size(left) || (counts_gpus_by_name(diagnose::last_word(left)) &&
                                            diagnose::last_word(left) != "n_gpu"));
  });
}

namespace {

// use_single_gpu, SINGLE_GPU and one_gpu_only, the whole name: batch_size_one_gpu is a number, and
// one_gpu_per_process is how several run.
bool is_name_of_one_gpu(std::string name) {
  for (const std::string_view before : {"use_", "is_", "run_"})
    if (name.starts_with(before)) {
      name.erase(0, before.size());
      break;
    }
  for (const std::string_view after : {"_mode", "_only"})
    if (name.ends_with(after)) {
      name.erase(name.size() - after.size());
      break;
    }
  return name == "single_gpu" || name == "singlegpu" || name == "single_process" ||
         name == "one_gpu";
}

// What the setting is called: the last part of args.single_gpu, the string in
// config["single_gpu"] and config.get("single_gpu").
std::string name_of_setting(Ref setting) {
  const auto& tree = setting.module->tree();
  Ref key;
  if (setting.kind() == Kind::identifier) return std::string(setting.text());
  if (setting.kind() == Kind::attribute) return std::string(setting.child(Field::attribute).text());
  if (setting.kind() == Kind::subscript) key = setting.child(Field::subscript);
  if (const diagnose::Call* call = setting.module->call_at(setting.node))
    if (call->name == "get" && CallRef{setting.module, call}.receiver())
      key = setting.with(setting.module->positional(setting.node, 0));
  const auto name = key ? tree.string_value(key.node) : std::nullopt;
  return name ? std::string(*name) : std::string();
}

// if args.single_gpu or config.get("use_single_gpu"): every part asks for one GPU by its name.
bool asks_for_one_gpu(Ref condition) {
  if (condition.kind() == Kind::boolean)
    return condition.module->tree()[condition.node].op == diagnose::Op::logical_or &&
           asks_for_one_gpu(condition.child(Field::left)) &&
           asks_for_one_gpu(condition.child(Field::right));
  return is_name_of_one_gpu(lowered(name_of_setting(condition)));
}

// The condition comes out so in runs of one process only.
bool says_one_process(const Program& program, Ref condition, bool holds) {
  // rank == -1 and stopper(metric), where both hold.
  if (holds && condition.kind() == Kind::boolean &&
      condition.module->tree()[condition.node].op == diagnose::Op::logical_and) {
    const auto says = [&](Ref part) {
      return part.kind() == Kind::comparison && says_one_process(program, part, true);
    };
    return says(condition.child(Field::left)) || says(condition.child(Field::right));
  }
  if (condition.kind() == Kind::not_expression) {
    const Ref flag = condition.child(Field::argument);
    return holds && (program.is_distributed_flag(condition) || decides_on_group(program, flag) ||
                     is_set_with_group(program, flag));
  }
  if (condition.kind() == Kind::comparison &&
      (program.is_distributed_flag(condition) || compares_rank(program, condition) ||
       compares_processes(program, condition))) {
    const OneProcess asked = asks_for_one_process(program, condition);
    if (asked != OneProcess::silent) return holds == (asked == OneProcess::holds);
  }
  if (holds) return asks_for_one_gpu(condition) || is_set_in_one_process(program, condition);
  // if empty or is_main(local_rank): return: the rank alone keeps no run of several out.
  if (condition.kind() == Kind::boolean && program.rank_test(condition) != diagnose::RankTest::none)
    return false;
  return program.is_distributed_flag(condition) || decides_on_group(program, condition) ||
         is_set_with_group(program, condition);
}

}  // namespace

bool only_without_distribution(const Program& program, Ref node) {
  if (asserts_one_process(program, node) || is_in_another_mode(program, node)) return true;
  return program.under(
      node, [&](Ref condition, bool holds) { return says_one_process(program, condition, holds); });
}

}  // namespace bench::pitfalls::facts
