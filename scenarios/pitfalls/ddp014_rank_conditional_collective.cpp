#include "diagnose/model/made_at.hpp"
#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/frameworks/engines.hpp"
#include "scenarios/pitfalls/frameworks/horovod_collectives.hpp"
#include "scenarios/pitfalls/frameworks/prepared.hpp"
#include "scenarios/pitfalls/frameworks/trainer_collectives.hpp"
#include "scenarios/pitfalls/judges.hpp"
#include "scenarios/pitfalls/metrics/own_figures.hpp"
#include "scenarios/pitfalls/metrics/torchmetrics.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/ranks/early_return.hpp"
#include "scenarios/pitfalls/ranks/one_sided.hpp"
#include "scenarios/pitfalls/ranks/open_guards.hpp"
#include "scenarios/pitfalls/ranks/tested_calls.hpp"
#include "scenarios/pitfalls/ranks/unanswered.hpp"
#include "scenarios/pitfalls/reach/opposite_runs.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Module;
using diagnose::RankTest;
using diagnose::Wrap;
using diagnose::Wrapper;

namespace {

// A group of some ranks. dist.new_group(backend="gloo") without a list of ranks holds all of them.
bool in_sub_group(const Program& program, const CallRef& call) {
  const Ref group = call.keyword("group");
  if (!group) return false;
  const CallRef made = program.origin(group, Api::new_group);
  return !made || made.argument(0, "ranks") || made.has_splat();
}

// while True: in a function that the other ranks run waits for the commands of one rank, which
// sends them from a callback.
bool waits_for_commands(const Program& program, const CallRef& call) {
  if (program.rank_guard(call.ref())) return false;
  const Ref loop = program.innermost_loop(call.ref());
  if (loop.kind() != diagnose::Kind::while_statement) return false;
  const std::string_view condition = loop.child(diagnose::Field::condition).text();
  return condition == "True" || condition == "1";
}

// ProjectConfiguration(automatic_checkpoint_naming=True); not where all that gives it a value says
// False.
bool names_checkpoints(const Program& program) {
  constexpr std::string_view kSetting = "automatic_checkpoint_naming";
  if (!program.mentions(kSetting)) return false;
  std::vector<Ref> given;
  for (const auto& [module, def, object] : program.attribute_defs(kSetting))
    given.push_back({module, def->value});
  for (const CallRef& made : program.calls_named("ProjectConfiguration"))
    if (const Ref value = made.keyword(kSetting)) given.push_back(value);
  return given.empty() || !std::all_of(given.begin(), given.end(), [&](Ref value) {
           return value && program.is_literal_false(value);
         });
}

// Under plain DDP save_state(directory) only writes. Sharded models are gathered by every rank, and
// automatic names wait for everyone.
bool save_state_communicates(const Program& program) {
  if (names_checkpoints(program)) return true;
  for (const CallRef& made : program.calls(Api::accelerator))
    for (const char* plugin : {"deepspeed_plugin", "fsdp_plugin"}) {
      const Ref given = made.keyword(plugin);
      const auto sources = given ? program.sources(given) : std::vector<diagnose::Source>{};
      // One that is made only for some command lines says nothing about this one.
      const auto is_plugin = [&](const diagnose::Source& source) {
        const CallRef call = program.as_call(source.ref);
        return call && call.call->name.ends_with("Plugin");
      };
      if (!sources.empty() && std::all_of(sources.begin(), sources.end(), is_plugin)) return true;
    }
  return false;
}

bool is_accelerate_collective(const Program& program, const CallRef& call) {
  const std::string_view name = call.call->name;
  if (name == "wait_for_everyone" || name == "gather_for_metrics") return true;
  if (name == "save_state") return save_state_communicates(program);
  return (name == "gather" || name == "reduce" || name == "pad_across_processes") &&
         is_of_accelerator(program, call);
}

// if args.eval: if rank == 0: evaluate(); return, above building DDP: the others build it.
void check_early_returns(const Program& program, Report& report) {
  std::vector<Ref> told;
  const auto flag = [&](const CallRef& call, std::string_view what, Ref meeting = {}) {
    if (program.guarded_by_rank(call.ref()) != RankTest::none) return;
    Ref leaving = return_of_some_ranks(program, call.ref());
    const std::string how = leaving ? "return" : "exit";
    if (!leaving) leaving = exit_of_some_ranks(program, call.ref());
    if (!leaving || std::find(told.begin(), told.end(), leaving) != told.end() ||
        !facts::is_reachable(program, leaving) ||
        only_in_runs_without(program, leaving, meeting ? meeting : call.ref()))
      return;
    told.push_back(leaving);
    report
        .at(leaving, Confidence::likely,
            "some ranks " + how + " here, and the others go on to " + std::string(what) +
                ", where they wait for them until the time-out")
        .help = "Let every rank " + how + ": move it out of the test of the rank.";
  };
  for (const Wrap& wrap : program.wraps())
    if (wrap.kind == Wrapper::ddp)
      flag(diagnose::made_at(program, wrap.call), "build DistributedDataParallel");
  for (const Api api : {Api::barrier, Api::all_reduce, Api::all_gather, Api::broadcast})
    for (const CallRef& call : program.calls(api))
      if (!in_sub_group(program, call)) flag(call, call.call->name);
  for (const diagnose::ForwardCall& forward : program.forward_calls())
    if (forward.wrap->kind == Wrapper::ddp && !program.under_no_grad(forward.call.ref()) &&
        !program.is_evaluation(forward.call.ref()) &&
        facts::training_loop_of(program, forward.call.ref()) != nullptr)
      flag(forward.call, "train, whose gradients are reduced over all ranks",
           forward.wrap->call.ref());
  for (const CallRef& call : training_out_of_sight(program))
    flag(call, "train, whose gradients are reduced over all ranks");
  if (accelerate_wraps(program))
    for (const CallRef& call : program.calls_named("prepare"))
      if (is_of_accelerator(program, call))
        flag(call, "prepare(), which builds DistributedDataParallel");
}

// barrier, or save_best, which comes to it.
std::string what_runs(const OwnDecision& decision) {
  const std::string name(decision.call.call->name);
  const std::string collective(decision.collective);
  return name == collective ? name : name + ", which comes to " + collective + ",";
}

// if val_loss < best: ...; dist.barrier(), by the loss on each rank's own part of the data.
void check_own_decisions(const Program& program, Report& report) {
  for (const OwnDecision& each : collectives_on_own_figures(program))
    report
        .at(each.call.ref(), Confidence::likely,
            what_runs(each) + " runs where '" + each.figure +
                "' says so, which each rank has from its own part of the data: ranks decide apart, "
                "and those that call it wait for the others until the time-out")
        .help = "All-reduce '" + each.figure + "' first, or call it on every rank.";
}

// with accelerator.main_process_first(): around the epochs.
void check_turns(const Program& program, Report& report) {
  for (const Ref& item : turns_around_training(program))
    if (facts::is_reachable(program, item))
      in_no_trial(
          report.at(
              item, Confidence::likely,
              "the main process trains inside, while the others wait at the entrance until it is "
              "done: its first reduction of gradients waits for them"))
          .help = "Keep only downloads and preprocessing inside; train below it.";
}

// if self.head is None: self.head = DDP(...) on one rank, where all ranks have made it above.
bool is_made_by_all_above(const Program& program, const Wrap& wrap) {
  const std::string_view name = program.assigned_name(wrap.call.ref());
  if (name.empty()) return false;
  const auto guards = diagnose::guards_where_made(program, wrap.call);
  if (std::none_of(guards.begin(), guards.end(), [&](const diagnose::Guard& guard) {
        return guard.holds && guard.condition.text() == std::string(name) + " is None";
      }))
    return false;
  const auto& wraps = program.wraps();
  return std::any_of(wraps.begin(), wraps.end(), [&](const Wrap& other) {
    return other.call.call != wrap.call.call && program.assigned_name(other.call.ref()) == name &&
           program.guarded_by_rank(other.call.ref()) == RankTest::none &&
           program.runs_before(other.call.ref(), wrap.call.ref());
  });
}

// Of torch.distributed and of Horovod.
std::vector<CallRef> collectives_of(const Program& program) {
  std::vector<CallRef> out;
  for (const Api api : {Api::barrier, Api::all_reduce, Api::all_gather, Api::gather, Api::broadcast,
                        Api::reduce, Api::reduce_scatter, Api::scatter, Api::all_to_all})
    out.insert(out.end(), program.calls(api).begin(), program.calls(api).end());
  const auto of_horovod = horovod_collectives(program);
  out.insert(out.end(), of_horovod.begin(), of_horovod.end());
  return out;
}

// self.log("loss", loss, sync_dist=True), which reduces over the ranks.
std::vector<CallRef> synchronised_logs(const Program& program) {
  std::vector<CallRef> out;
  for (const char* name : {"log", "log_dict"})
    for (const CallRef& call : program.calls_named(name)) {
      const Ref synchronised = call.keyword("sync_dist");
      if (synchronised && program.is_literal_true(synchronised) && !call.keyword("rank_zero_only"))
        out.push_back(call);
    }
  return out;
}

// if rank == 0: torch.save(fsdp.module.state_dict(), path)
void check_states_below_shards(const Program& program, Report& report) {
  for (const CallRef& call : states_below_shards(program))
    if (program.guarded_by_rank(call.ref()) == RankTest::main_only)
      in_no_trial(
          report.at(
              call.ref(), Confidence::likely,
              "state_dict() below the FSDP wrapper on one rank: it holds the shards of that rank, "
              "and not the model"))
          .help = "Ask the FSDP object for its states, on every rank; write them on one.";
}

// Tells of collectives that some ranks come to alone.
class Lonely {
 public:
  Lonely(const Program& program, Report& report) : program_(program), report_(report) {}

  void flag(const CallRef& call, const std::string& what) {
    if (program_.guarded_by_rank(call.ref()) == RankTest::none || is_matched(program_, call) ||
        waits_for_commands(program_, call) || in_sub_group(program_, call) ||
        !facts::is_reachable(program_, call.ref()) || lets_all_in(program_, call.ref()))
      return;
    if (const Ref guard = program_.rank_guard(call.ref())) {
      if (!is_uncalled_test(program_, guard)) tell(call.ref(), what, Confidence::certain);
    } else if (!is_let_out_by_counter(program_, call.ref())) {
      flag_entries(call, what);
    }
  }

  void flag_with_helpers(const CallRef& call) {
    const std::string name(call.call->name);
    flag(call, name);
    flag_helpers(call, "calls " + name);
  }

  void flag_helpers(const CallRef& call, const std::string& does) {
    for (const CallRef& site : lonely_calls(program_, call))
      flag(site, std::string(site.call->name) + ", which " + does + ",");
  }

 private:
  // if rank == 0: evaluate(), in which several collectives stand: each such call is told once.
  void flag_entries(const CallRef& call, const std::string& what) {
    for (const Ref where : tested_calls(program_, call.ref())) {
      if (std::find(told_.begin(), told_.end(), where) != told_.end()) continue;
      told_.push_back(where);
      const CallRef entry = program_.as_call(where);
      const std::string way = where == call.ref() || !entry
                                  ? what
                                  : std::string(entry.call->name) + ", which comes to " + what +
                                        (what.ends_with(',') ? "" : ",");
      tell(where, way, Confidence::likely);
    }
  }

  void tell(Ref where, const std::string& what, Confidence confidence) {
    report_
        .at(where, confidence,
            what +
                " runs on some ranks only: those that call it wait for the others until the "
                "time-out")
        .help = "Call it on every rank; keep only input and output under the test of the rank.";
  }

  const Program& program_;
  Report& report_;
  std::vector<Ref> told_;
};

}  // namespace

void check_rank_conditional_collective(const Program& program, Report& report) {
  Lonely lonely(program, report);
  for (const CallRef& call : collectives_of(program)) lonely.flag_with_helpers(call);
  for (const Wrap& wrap : program.wraps())
    if (wrap.kind == Wrapper::ddp && !is_made_by_all_above(program, wrap))
      lonely.flag(wrap.call, "building DistributedDataParallel (a collective)");
  for (const CallRef& call : program.calls(Api::new_group))
    if (!call.has_splat() && !call.keyword("use_local_synchronization"))
      lonely.flag(call, "making a group, which every rank has to take part in,");
  for (const CallRef& call : gathers_of_shards(program))
    lonely.flag(call,
                std::string(call.call->name) + "() of a sharded model, which gathers its shards,");
  for (const EngineMeeting& meeting : meetings_of_engines(program))
    lonely.flag(meeting.call, meeting.what);
  for (const CallRef& call : barriers_by_name(program)) {
    lonely.flag(call, std::string(call.call->name));
    lonely.flag_helpers(call, "calls synchronize");
  }
  for (const CallRef& call : reads_of_shuffled_loaders(program))
    lonely.flag(
        call,
        "reading a prepared loader that shuffles, which broadcasts the state of its generator,");
  for (const CallRef& call : lightning_collectives(program)) lonely.flag_with_helpers(call);
  for (const CallRef& call : trainer_collectives(program))
    lonely.flag(call,
                std::string(call.call->name) + "() of the Trainer, in which all processes meet,");
  check_states_below_shards(program, report);
  check_turns(program, report);
  if (program.imports("accelerate"))
    for (const Module* module : program.modules())
      for (const auto& call : module->calls())
        if (is_accelerate_collective(program, {module, &call}))
          lonely.flag_with_helpers({module, &call});
  for (const CallRef& call : saves_of_lightning(program)) lonely.flag(call, "save_checkpoint");
  if (facts::is_distributed(program))
    for (const CallRef& call : program.calls_named("compute"))
      if (reduces_on_compute(program, call)) {
        lonely.flag(call, "compute(), which reduces over the ranks,");
        lonely.flag_helpers(call, "calls compute() of a metric that reduces over the ranks");
      }
  for (const CallRef& call : synchronised_logs(program))
    lonely.flag(call, std::string(call.call->name) + " with sync_dist=True");
  check_early_returns(program, report);
  check_own_decisions(program, report);
}

namespace {

// The first collective in which two ranks differ, "rank 0 issued all_reduce, rank 1 nothing"; ""
// where their logs agree.
std::string first_difference(const RunEvidence& run) {
  const std::vector<Json> logs = run.of_every_rank("collectives");
  for (std::size_t rank = 1; rank < logs.size(); ++rank) {
    const std::size_t longest = std::max(logs[0].size(), logs[rank].size());
    for (std::size_t i = 0; i < longest; ++i) {
      const auto call = [&](std::size_t which) {
        return i < logs[which].size() ? logs[which][i].get<std::string>() : std::string("nothing");
      };
      if (call(0) == call(rank)) continue;
      return "rank 0 issued " + call(0) + ", rank " + std::to_string(rank) + " " + call(rank) +
             " as collective " + std::to_string(i + 1);
    }
  }
  return {};
}

bool collective_failed(const RunEvidence& run) {
  return !run.hung_ranks().empty() || !run.error_with("Connection closed by peer").empty() ||
         !run.error_with("collective mismatch").empty();
}

}  // namespace

void judge_rank_conditional_collective(const RunEvidence& run, RunReport& report) {
  // Steps, batches and forward passes that differ between ranks are other rules' causes.
  if (run.first("batches") != nullptr || run.first("forwards_on_one_rank") != nullptr) return;
  const std::string difference = first_difference(run);
  if (difference.empty() || !collective_failed(run)) return;
  Finding& finding =
      report.add(Confidence::certain, "the ranks' collectives do not match: " + difference);
  finding.help =
      "Let every rank issue the same collectives in the same order; keep only the "
      "input and output under `if rank == 0`.";
}

Price price_rank_conditional_collective(const RunEvidence& broken, const RunEvidence& cured) {
  Price price;
  price.reproduced = collective_failed(broken) && !first_difference(broken).empty();
  price.gone = !collective_failed(cured) && first_difference(cured).empty() &&
               cured.first("error") == nullptr;
  price.cost = broken.document().value("limit_seconds", 0.0);
  price.unit = "s hung until the time-out";
  const std::vector<int> hung = broken.hung_ranks();
  if (hung.empty()) {
    price.cost = 0;
    price.unit = "steps after it";
    price.seen = broken.text("error").substr(0, broken.text("error").find('\n'));
  } else {
    price.seen = "nothing is printed: rank " + std::to_string(hung.front()) + " hangs; " +
                 first_difference(broken);
  }
  return price;
}

}  // namespace bench::pitfalls
