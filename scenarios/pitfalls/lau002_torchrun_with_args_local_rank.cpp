#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/program/edits.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/parsers.hpp"
#include "scenarios/pitfalls/ranks/env_rendezvous.hpp"
#include "scenarios/pitfalls/reach/certainty.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Field;
using diagnose::Kind;
using diagnose::Launcher;
using diagnose::LaunchLine;
using diagnose::Module;
using diagnose::NodeId;

namespace {

bool reads_environment(const Program& program) {
  return program.mentions("\"LOCAL_RANK\"") || program.mentions("'LOCAL_RANK'");
}

// A parser in a function that nothing calls: no run has its options.
bool is_left_behind(const Program& program, const CallRef& option) {
  const auto function = program.enclosing_function(option.ref());
  return function && program.call_sites(function).empty() && program.handed_on(function).empty();
}

// That of a parser which some run makes, where there are several.
CallRef local_rank_option(const Program& program) {
  CallRef uncalled;
  for (const CallRef& option : program.calls_named("add_argument"))
    for (std::size_t i = 0; const Ref name = option.positional(i); ++i) {
      const std::string text = program.string(name).value_or("");
      if (text != "--local_rank" && text != "--local-rank") continue;
      if (!is_left_behind(program, option)) return option;
      if (!uncalled) uncalled = option;
    }
  return uncalled;
}

// args.local_rank = dist.get_rank(), below init_process_group: the option's own value is not used.
bool is_given_rank_later(const Program& program) {
  for (const Module* module : program.modules())
    for (const std::uint32_t index : module->defs_of("local_rank", true)) {
      const NodeId value = module->defs()[index].value;
      if (value == diagnose::kNoNode) continue;
      const std::string_view text = module->text(value);
      if (facts::contains(text, "get_rank(") || facts::contains(text, "get_node_local_rank("))
        return true;
    }
  return false;
}

// if args.local_rank == 0: print(...): the line is printed by all, and nothing else comes of it.
bool only_prints(Ref test) {
  const auto& tree = test.module->tree();
  const NodeId statement = tree[test.node].parent;
  if (tree[statement].kind != Kind::if_statement ||
      tree.child(statement, Field::alternative) != diagnose::kNoNode)
    return false;
  const NodeId block = tree.child(statement, Field::consequence);
  if (block == diagnose::kNoNode) return false;
  for (NodeId at = tree[block].first_child; at != diagnose::kNoNode; at = tree[at].next_sibling) {
    const std::string_view text = tree.text(at);
    if (tree[at].kind != Kind::expression_statement ||
        !(text.starts_with("print(") || text.starts_with("logging.") ||
          text.starts_with("logger.")))
      return false;
  }
  return true;
}

// if args.local_rank in [-1, 0]: accelerate launch fills the environment alone, so the option keeps
// its default in every process.
void check_beside_accelerate(const Program& program, Report& report) {
  if (!program.uses(diagnose::Api::accelerator) || facts::speaks_of(program, "distributed.launch"))
    return;
  for (const Module* module : program.modules())
    if (!module->defs_of("local_rank", true).empty()) return;
  for (const LaunchLine& launch : program.launches())
    if (launch.launcher == Launcher::launch_module || launch.launcher == Launcher::deepspeed)
      return;
  for (const Module* module : program.modules())
    for (const NodeId node : module->nodes_of(Kind::comparison)) {
      const Ref test{module, node};
      const Ref left = test.with(module->tree().child_at(node, 0));
      if (left.kind() != Kind::attribute || left.child(Field::attribute).text() != "local_rank" ||
          left.child(Field::object).kind() != Kind::identifier ||
          program.rank_test(test) == diagnose::RankTest::none ||
          !facts::is_reachable(program, test) || only_prints(test))
        continue;
      Finding& finding =
          report.at(test, Confidence::likely,
                    "accelerate launch passes no --local_rank: every process keeps the default, "
                    "and all take the same side here");
      finding.severity = Severity::warning;
      finding.help = "Ask accelerator.is_main_process or accelerator.local_process_index.";
      return;
    }
}

// "Usage: torchrun --nproc_per_node=4 train.py", in a sentence: a line of the script names torchrun
// and several processes, and nothing names the old launcher.
bool speaks_of_torchrun(const Program& program) {
  const std::string_view source = program.root().tree().source();
  if (facts::contains(source, "distributed.launch")) return false;
  const std::size_t at = source.find("torchrun -");
  if (at == std::string_view::npos) return false;
  const std::string_view line = source.substr(at, source.find('\n', at) - at);
  return facts::contains(line, "nproc") && !facts::contains(line, "--local") &&
         !facts::contains(line, "node=1 ") && !facts::contains(line, "node 1 ");
}

// The commands that the script shows start it with torchrun, and none of them passes the option;
// nothing gives it another value later.
bool shows_torchrun(const Program& program) {
  for (const Module* module : program.modules())
    if (!module->defs_of("local_rank", true).empty()) return false;
  const auto launches = own_launches_in_text(program);
  bool shown = launches.empty() && speaks_of_torchrun(program);
  for (const LaunchLine& launch : launches) {
    for (const auto& word : launch.script_arguments)
      if (!word.literal || word.text.starts_with("--local")) return false;
    if (launch.launcher != Launcher::torchrun) return false;
    shown = shown || launch.processes_per_node().value_or(2) > 1;
  }
  return shown;
}

// "--local_rank" alone, in a parser that leaves what it does not know: torch.distributed.launch of
// PyTorch 2.0 passes --local-rank, which is dropped, and torchrun passes nothing.
bool is_filled_by_no_launcher(const Program& program, const CallRef& option) {
  constexpr int kDashVersion = 200;
  const auto options = program.calls_named("add_argument");
  const bool dash = std::any_of(options.begin(), options.end(), [&](const CallRef& other) {
    for (std::size_t i = 0; const Ref name = other.positional(i); ++i)
      if (program.string(name).value_or("") == "--local-rank") return true;
    return false;
  });
  return program.launches().empty() && !dash && program.newest().torch >= kDashVersion &&
         program.calls(diagnose::Api::spawn).empty() && program.calls_named("Process").empty() &&
         facts::may_leave_unknown_options(program, option);
}

// All lines that are known start one process, to which the default may belong.
bool starts_one_process(const Program& program) {
  const auto& launches = program.launches();
  return std::all_of(launches.begin(), launches.end(), [](const LaunchLine& launch) {
    return launch.processes_per_node() == 1 && launch.nodes() == 1;
  });
}

// Ranks on the CPU, where no test asks for the option: what it holds chooses nothing.
bool only_shows_it(const Program& program) {
  const auto joins = program.calls(diagnose::Api::init_process_group);
  const bool is_gloo = std::all_of(joins.begin(), joins.end(), [&](const CallRef& join) {
    return program.string(join.argument(0, "backend")).value_or("") == "gloo";
  });
  if (!is_gloo || joins.empty() || program.mentions("cuda") || program.mentions("device_ids"))
    return false;
  for (const Module* module : program.modules())
    for (const NodeId test : module->nodes_of(Kind::comparison))
      if (facts::contains(module->text(test), "local_rank")) return false;
  return true;
}

// The word in the quotes of a string that stands beside it.
std::string quoted_as(Ref string, const std::string& word) {
  const std::string quote = string.text().starts_with('\'') ? "'" : "\"";
  return quote + word + quote;
}

// Runs without a launcher keep the default that they have, also none.
void take_default_from_environment(const CallRef& option, Finding& finding) {
  constexpr std::string_view kTitle = "Take the default from LOCAL_RANK";
  const Ref written = option.keyword("default");
  const bool is_none = !written || written.kind() == Kind::none_literal;
  const std::string known = written ? std::string(written.text()) : "None";
  const std::string variable = quoted_as(option.positional(0), "LOCAL_RANK");
  const std::string value =
      is_none ? "int(os.environ[" + variable + "]) if " + variable + " in os.environ else None"
              : "int(os.environ.get(" + variable + ", " + known + "))";
  if (option.has_splat() || option.keyword("required") ||
      (option.module->import_path("os").empty() &&
       !insert_import(*option.module, "os", std::string(kTitle), finding)))
    return;
  if (written)
    replace(written, value, std::string(kTitle), finding);
  else
    add_argument(option, "default=" + value, std::string(kTitle), finding);
}

}  // namespace

void check_torchrun_with_args_local_rank(const Program& program, Report& report) {
  const CallRef option = local_rank_option(program);
  if (!option || reads_environment(program) || program.imports("deepspeed")) return;
  check_beside_accelerate(program, report);
  if (program.framework_distributes() || is_given_rank_later(program)) return;
  bool torchrun = false;
  for (const LaunchLine& launch : program.launches()) {
    torchrun = torchrun || launch.launcher == Launcher::torchrun;
    if (launch.launcher == Launcher::launch_module || launch.launcher == Launcher::deepspeed)
      return;
  }
  bool used = false;
  for (const Module* module : program.modules())
    for (NodeId id = 0; id < module->tree().size() && !used; ++id)
      used = (*module)[id].kind == Kind::attribute &&
             module->text(module->tree().child(id, Field::attribute)) == "local_rank" &&
             facts::is_reachable(program, {module, id});
  if (!used || !facts::is_distributed(program)) return;
  const bool shown = program.launches().empty() && shows_torchrun(program);
  const bool dropped = !torchrun && is_filled_by_no_launcher(program, option);
  Finding& finding = report.at(
      option.ref(),
      torchrun           ? Confidence::certain
      : shown || dropped ? Confidence::likely
                         : Confidence::check,
      dropped && !shown
          ? "torchrun passes no --local_rank, and torch.distributed.launch a --local-rank that "
            "this parser leaves: every rank keeps the default, and all use GPU 0 or none"
          : "torchrun passes no --local_rank: every rank keeps the default, and all use GPU 0 or "
            "none");
  if (!torchrun) finding.severity = shown || dropped ? Severity::warning : Severity::info;
  if ((torchrun && starts_one_process(program)) || only_shows_it(program)) tell_as_note(finding);
  finding.help = "Read it from the environment: int(os.environ[\"LOCAL_RANK\"]).";
  take_default_from_environment(option, finding);
}

}  // namespace bench::pitfalls
