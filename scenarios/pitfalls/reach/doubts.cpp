// What is not known of a program although findings rest on it: the members of Doubts, see
// certainty.hpp.
#include "diagnose/model/made_at.hpp"
#include "diagnose/model/script_kind.hpp"
#include "scenarios/pitfalls/frameworks/accelerate_configs.hpp"
#include "scenarios/pitfalls/frameworks/prepared.hpp"
#include "scenarios/pitfalls/metrics/metric_sums.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"
#include "scenarios/pitfalls/ranks/nodes_of_job.hpp"
#include "scenarios/pitfalls/ranks/wrapped_ranks.hpp"
#include "scenarios/pitfalls/reach/as_configured.hpp"
#include "scenarios/pitfalls/reach/as_launched.hpp"
#include "scenarios/pitfalls/reach/backups.hpp"
#include "scenarios/pitfalls/reach/certainty.hpp"
#include "scenarios/pitfalls/reach/opposite_runs.hpp"
#include "scenarios/pitfalls/reach/tested_callers.hpp"

#include <algorithm>
#include <iterator>

namespace bench::pitfalls::facts {

using diagnose::Api;
using diagnose::Wrap;

namespace {

// Rules about what every rank does: none of the callers may test the rank.
constexpr std::string_view kOfEveryRank[] = {"DDP026", "DDP039", "DDP040"};

// Rules of other families that presume several processes.
constexpr std::string_view kOfRanks[] = {"LAU006"};

// Rules of the DDP family whose finding holds in one process as well.
constexpr std::string_view kOfAnyProgram[] = {"DDP028", "DDP030", "DDP036", "DDP046", "DDP047"};

// Rules about the wrapper, which hold for DataParallel in one process too.
constexpr std::string_view kOfWrapper[] = {"DDP012", "DDP041", "DDP045"};

template <std::size_t kCount>
bool is_listed(const std::string_view (&list)[kCount], std::string_view id) {
  return std::find(std::begin(list), std::end(list), id) != std::end(list);
}

// Rules about a line that fails whenever it is run: an option that leads there is broken, whether
// or not the config files of the project switch it on.
constexpr std::string_view kOfBrokenLines[] = {"DDP012", "LIT001", "LIT003", "LIT004", "LIT005"};

// Rules whose finding matters with several processes only, in code that one process runs as well.
constexpr std::string_view kOfSeveral[] = {"DDP010", "DDP021", "DDP022", "DDP026",
                                           "DDP033", "DDP039", "DDP040", "DDP041",
                                           "DDP043", "LAU006", "ACC003", "ACC004"};

// Rules about what the program does with a model that it has wrapped.
constexpr std::string_view kOfWrappedModel[] = {"DDP006", "DDP012", "DDP013"};

bool is_wrapped_by(const Rule& rule, diagnose::Wrapper kind) {
  if (rule.id.starts_with("DP")) return kind == diagnose::Wrapper::data_parallel;
  return is_listed(kOfWrapper, rule.id) || kind == diagnose::Wrapper::ddp;
}

// `else` of `if self.several:`, in a program that wraps where self.several holds.
bool only_runs_unwrapped(const Program& program, const Rule& rule, Ref where) {
  if (!rule.id.starts_with("DP") && !is_listed(kOfWrappedModel, rule.id)) return false;
  bool any = false;
  for (const Wrap& wrap : program.wraps()) {
    if (!is_wrapped_by(rule, wrap.kind)) continue;
    any = true;
    if (!only_in_runs_without(program, where, diagnose::made_at(program, wrap.call).ref()))
      return false;
  }
  return any;
}

bool needs_ranks(const Rule& rule) {
  if (is_listed(kOfAnyProgram, rule.id)) return false;
  return rule.id.starts_with("DDP") || is_listed(kOfRanks, rule.id);
}

// loader, model = Distribute(args, data, model) of a file that is not at hand: by its name it gives
// the model back wrapped.
bool comes_back_from_a_wrapper(const Program& program) {
  const auto& root = program.root();
  return std::any_of(root.calls().begin(), root.calls().end(), [&](const diagnose::Call& each) {
    const CallRef call{&root, &each};
    const auto& tree = root.tree();
    const auto line = tree[each.node].parent;
    if (!says_any(each.name, {"distribut", "parallel", "ddp", "wrap"}) ||
        line == diagnose::kNoNode || tree[line].kind != diagnose::Kind::assignment ||
        program.callee(call))
      return false;
    const auto given = variables_in(call.ref().child(diagnose::Field::arguments));
    return meet(given, variables_in(call.ref().with(tree.child(line, diagnose::Field::left))));
  });
}

// The script itself does, and not only what it imports.
bool speaks_to_a_group(const Program& program) {
  for (const Api api : {Api::init_process_group, Api::get_rank, Api::get_world_size, Api::barrier,
                        Api::all_reduce, Api::distributed_sampler})
    for (const CallRef& call : program.calls(api))
      if (call.module == &program.root()) return true;
  return false;
}

// A program that trains, joins a group only where the environment tells of one, and has nothing
// that would combine what its processes learn: it is run as one.
bool shares_nothing(const Program& program) {
  if (program.training_loops().empty() || program.has_ddp() || program.framework_distributes() ||
      program.uses(Api::hvd_init) || program.uses(Api::spawn))
    return false;
  const auto& launches = program.launches();
  if (std::any_of(launches.begin(), launches.end(), starts_several)) return false;
  for (const char* word : {".grad", "FSDP", "FullyShardedDataParallel", "deepspeed",
                           "DistributedDataParallel", "LocalSGD", "parallelize"})
    if (program.mentions(word)) return false;
  // One process trains on all GPUs: dist.get_rank() is what is left of a version with ranks.
  if (program.has_data_parallel()) return true;
  // model.module.state_dict() of a model that another file wraps.
  for (const char* below : {".module.", ".module,", ".module)"})
    if (program.mentions(below)) return false;
  return !comes_back_from_a_wrapper(program) &&
         !(speaks_to_a_group(program) && works_in_a_group(program));
}

// PARALLEL = False above the only lines that wrap.
bool wraps_nowhere(const Program& program) {
  const auto& wraps = program.wraps();
  return !wraps.empty() && std::all_of(wraps.begin(), wraps.end(), [&](const Wrap& wrap) {
    return is_switched_off(program, wrap.call.ref());
  });
}

// All launch lines that are known start one process, by a launcher that could start several.
bool starts_one_process(const Program& program) {
  const auto& launches = program.launches();
  return !launches.empty() &&
         std::all_of(launches.begin(), launches.end(), [](const diagnose::LaunchLine& launch) {
           return launch.launcher != diagnose::Launcher::python &&
                  launch.processes_per_node() == 1 && launch.nodes() == 1;
         });
}

// The launcher passes --local_rank only where it is the old one: under torchrun args.local_rank
// stays what its default is.
bool asks_for_local_rank(const Program& program, Ref wrapper) {
  return program.under(wrapper, [](Ref condition, bool) {
    return contains(lowered(condition.text()), "local_rank");
  });
}

// if local_rank == -1: DataParallel(model), and every line that is known is one of a launcher.
bool only_starts_ranks(const Program& program) {
  const auto& launches = program.launches();
  const auto is_of_launcher = [](const diagnose::LaunchLine& line) {
    return line.launcher == diagnose::Launcher::torchrun ||
           line.launcher == diagnose::Launcher::launch_module;
  };
  if (launches.empty() || !std::all_of(launches.begin(), launches.end(), is_of_launcher))
    return false;
  const bool by_torchrun = std::any_of(launches.begin(), launches.end(), [](const auto& line) {
    return line.launcher == diagnose::Launcher::torchrun;
  });
  bool any = false;
  for (const Wrap& wrap : program.wraps()) {
    if (wrap.kind != diagnose::Wrapper::data_parallel) continue;
    if (!only_without_distribution(program, wrap.call.ref())) return false;
    if (by_torchrun && asks_for_local_rank(program, wrap.call.ref())) return false;
    any = true;
  }
  return any;
}

}  // namespace

bool Doubts::starts_ranks() {
  if (!ranks_) ranks_ = certainty_of_ranks(program_) == Certainty::certain;
  return *ranks_;
}

bool Doubts::is_put_aside() {
  if (!put_aside_) put_aside_ = is_backup(program_);
  return *put_aside_;
}

bool Doubts::makes_wrapper() {
  if (wrapper_) return *wrapper_;
  const auto& wraps = program_.wraps();
  wrapper_ = wraps.empty() || std::any_of(wraps.begin(), wraps.end(), [&](const Wrap& wrap) {
               return certainty_of_reach(program_, wrap.call.ref()) == Certainty::certain &&
                      !(visible_gpus(program_) == 1 && is_made_for_several_gpus(program_, wrap));
             });
  return *wrapper_;
}

std::string Doubts::about_configuration(const Rule& rule, Ref where) {
  // In a group of one the wrapper is made all the same, and DataParallel needs one process.
  const bool of_wrapper = is_listed(kOfWrapper, rule.id);
  if (is_listed(kOfSeveral, rule.id) && !(of_wrapper && program_.has_data_parallel()))
    if (auto why = one_process_as_launched(program_, where, !of_wrapper); !why.empty()) return why;
  if ((is_listed(kOfSeveral, rule.id) || is_listed(kOfWrapper, rule.id)) &&
      accelerate_wraps(program_))
    if (auto why = one_process_of_accelerate(program_); !why.empty()) return why;
  if (!is_listed(kOfBrokenLines, rule.id))
    if (auto why = passed_by_fixed_commands(program_, where); !why.empty()) return why;
  if (!reads_configs_) reads_configs_ = may_read_configs(program_);
  if (!*reads_configs_) return {};
  const std::string why =
      is_listed(kOfBrokenLines, rule.id) ? "" : passed_by_as_configured(program_, where);
  // What is wrong with code that is there for ranks stays wrong, however many are started.
  if (!why.empty() || !is_listed(kOfEveryRank, rule.id)) return why;
  if (!one_process_) one_process_ = one_process_as_configured(program_);
  return *one_process_;
}

// The config files of the project are a doubt of all other rules already.
bool Doubts::is_left_out(const Rule& rule, Ref where) {
  if (is_left_out_by_all_lines(program_, where)) return true;
  if (!is_listed(kOfBrokenLines, rule.id)) return false;
  if (!reads_configs_) reads_configs_ = may_read_configs(program_);
  return *reads_configs_ && !passed_by_as_configured(program_, where).empty();
}

bool Doubts::one_by_setting(const Rule& rule) {
  if (!needs_ranks(rule)) return false;
  if (!one_by_setting_) one_by_setting_ = is_one_by_setting(program_);
  return *one_by_setting_;
}

std::string Doubts::about(const Rule& rule, Ref where) {
  if (diagnose::is_test(program_.root())) return "a test of the project may do so on purpose";
  if (is_put_aside()) return "it lies in a folder of backups, and nothing here starts it";
  if (only_runs_unwrapped(program_, rule, where)) return "only runs without the wrapper come by";
  const bool of_wrapper = rule.id.starts_with("DP");
  if ((of_wrapper || rule.id.starts_with("DDP")) && is_never_made(program_, where))
    return "nothing here makes an object of this class";
  // The wrapper itself: a function that is never called makes none.
  if (rule.id == "DP017" && certainty_of_reach(program_, where) == Certainty::no)
    return "no call that can be followed leads here";
  if (of_wrapper && visible_gpus(program_) == 1 && !makes_wrapper())
    return "one GPU is visible, and the wrapper is made for more";
  if (of_wrapper && only_starts_ranks(program_))
    return "all launch lines that are known start ranks, which do without this wrapper";
  if (of_wrapper && certainty_of_reach(program_, where) == Certainty::no)
    return "no call that can be followed leads here";
  if (of_wrapper) return makes_wrapper() ? "" : "no call that can be followed makes the wrapper";
  // In a script that trains; what a file only offers, others call.
  if ((rule.id.starts_with("ACC") || rule.id == "LIT009") && !program_.training_loops().empty() &&
      certainty_of_reach(program_, where) == Certainty::no)
    return "no call that can be followed leads here";
  if (!needs_ranks(rule)) return {};
  if (is_listed(kOfEveryRank, rule.id) && shares_nothing(program_))
    return "nothing here shares gradients between processes";
  if (is_listed(kOfEveryRank, rule.id) && starts_one_process(program_))
    return "its launch line starts one process";
  if (is_listed(kOfWrapper, rule.id) && wraps_nowhere(program_))
    return "what would make the wrapper is switched off";
  if (is_listed(kOfWrapper, rule.id) && !makes_wrapper())
    return "no call that can be followed makes the wrapper";
  const bool any_wrapper = is_listed(kOfWrapper, rule.id) && program_.has_data_parallel();
  if (!any_wrapper && !starts_ranks() &&
      (asks_callers_for_the_rank(program_, rule.id, where) || !wraps_for_others(program_)))
    return "nothing here shows that several processes run it";
  if (certainty_of_reach(program_, where) != Certainty::certain)
    return "no call that can be followed leads here";
  // A group that the parent asks for or leaves is missing there as well.
  if (rule.id != "DDP005" && only_in_parent(program_, where))
    return "only the process that starts the ranks comes by";
  if (is_listed(kOfEveryRank, rule.id) && some_caller_tests_rank(program_, where))
    return "one of its callers tests the rank";
  if (rule.id == "DDP039" && is_left_to_callers(program_, where))
    return "what calls it is not at hand";
  return {};
}

}  // namespace bench::pitfalls::facts
