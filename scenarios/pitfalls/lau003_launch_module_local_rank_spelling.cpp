#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/program/edits.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/parsers.hpp"
#include "scenarios/pitfalls/program/words.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Launcher;
using diagnose::LaunchLine;

namespace {

constexpr int kDashVersion = 200;  // PyTorch 2.0 changed the spelling

// parser.add_argument("--local-rank"), an option of its own beside the old one.
bool dash_is_accepted(const Program& program, const CallRef& option) {
  const auto options = program.calls_named("add_argument");
  return std::any_of(options.begin(), options.end(), [&](const CallRef& other) {
    return other.module == option.module &&
           program.string(other.positional(0)).value_or("") == "--local-rank";
  });
}

// Process(target=worker, args=(rank, ...)) in a loop, where the worker joins the group: the script
// starts its ranks itself, and no launcher passes anything.
bool starts_its_ranks(const Program& program) {
  const auto processes = program.calls_named("Process");
  return std::any_of(processes.begin(), processes.end(), [&](const CallRef& process) {
    const Ref target = process.keyword("target");
    if (!target || !program.innermost_loop(process.ref()) ||
        !facts::is_reachable(program, process.ref()))
      return false;
    const auto& workers = program.sources(target);
    return std::any_of(workers.begin(), workers.end(), [&](const diagnose::Source& worker) {
      return worker.ref.kind() == diagnose::Kind::function &&
             program.subtree_calls(worker.ref, [](const CallRef& call) {
               return call.call->api == diagnose::Api::init_process_group;
             });
    });
  });
}

// int(os.environ["LOCAL_RANK"]), also by way of a name or a function.
bool comes_from_variable(const Program& program, Ref value) {
  if (!value) return false;
  if (program.environment_name(value) == "LOCAL_RANK" ||
      facts::contains(text_behind(program, value), "LOCAL_RANK"))
    return true;
  const auto& sources = program.sources(value);
  return std::any_of(sources.begin(), sources.end(), [&](const diagnose::Source& source) {
    const CallRef number = program.as_call(source.ref);
    return program.environment_name(source.ref) == "LOCAL_RANK" ||
           (number && number.call->name == "int" && number.positional(0) &&
            program.environment_name(number.positional(0)) == "LOCAL_RANK");
  });
}

// args.local_rank = int(os.environ["LOCAL_RANK"]): what the option was given does not count, unless
// it stands in where the variable is missing: os.environ.get("LOCAL_RANK", args.local_rank).
bool is_overwritten(const Program& program) {
  for (const diagnose::Module* module : program.modules())
    for (const auto index : module->defs_of("local_rank", true)) {
      const auto& def = module->defs()[index];
      if (def.value != diagnose::kNoNode && comes_from_variable(program, {module, def.value}) &&
          !facts::contains(module->text(def.value), ".local_rank"))
        return true;
    }
  return false;
}

// add_argument("--local_rank", required=True): the parser exits before anything is overwritten,
// under torchrun, which passes no option, as under the old launcher, which spells it with a dash.
// Not where the script hands it over itself.
bool is_demanded(const Program& program, const CallRef& option) {
  if (option.keyword("required").text() != "True") return false;
  for (const char* name : {"parse_args", "parse_known_args"})
    for (const CallRef& parse : program.calls_named(name))
      if (parse.positional(0) || parse.keyword("args")) return false;
  const std::string_view source = option.module->tree().source();
  return !facts::contains(source, "sys.argv +=") && !facts::contains(source, "sys.argv.") &&
         !facts::contains(source, "sys.argv = ");
}

// A comment shows how the script is started; the parser exits before anything is overwritten.
bool says_launch_module(const Program& program) {
  return facts::speaks_of(program, "torch.distributed.launch -") &&
         !facts::speaks_of(program, "use_env");
}

// The command that a line of a comment or docstring holds, with the lines that it goes on in.
std::string command_around(std::string_view source, std::size_t at) {
  std::size_t line = source.rfind('\n', at) + 1;  // 0 for the first
  const std::size_t python = source.substr(line, at - line).rfind("python");
  if (python == std::string_view::npos) return {};
  std::string out;
  for (line += python; line < source.size();) {
    const std::size_t end = std::min(source.find('\n', line), source.size());
    out += source.substr(line, end - line);
    if (!out.ends_with('\\')) break;
    out.back() = ' ';
    line = std::min(source.find_first_not_of("# \t", end + 1), source.size());
  }
  return out;
}

// # python -m torch.distributed.launch --nproc_per_node=4 train.py in train.py: as good as a line.
bool shows_command_of_its_own(const Program& program) {
  const std::string_view source = program.root().tree().source();
  const std::string_view path = program.root().path();
  constexpr std::string_view kLauncher = "torch.distributed.launch";
  for (std::size_t at = source.find(kLauncher); at != std::string_view::npos;
       at = source.find(kLauncher, at + 1)) {
    const auto launch = diagnose::parse_launch(command_around(source, at));
    if (launch && launch->launcher == Launcher::launch_module &&
        launch->script_name() == path.substr(path.rfind('/') + 1))
      return true;
  }
  return false;
}

// local_rank = args.local_rank, a name that nothing reads.
bool is_put_aside(Ref option) {
  const auto& module = *option.module;
  const auto& tree = module.tree();
  const diagnose::NodeId line = tree[option.node].parent;
  const Ref name = option.with(line).child(diagnose::Field::left);
  if (tree[line].kind != diagnose::Kind::assignment || name.kind() != diagnose::Kind::identifier ||
      name == option)
    return false;
  for (diagnose::NodeId id = 0; id < tree.size(); ++id)
    if (tree[id].kind == diagnose::Kind::identifier && id != name.node &&
        tree[id].field != diagnose::Field::attribute && tree[id].field != diagnose::Field::name &&
        tree.text(id) == name.text() && module.function_of(id) == module.function_of(name.node))
      return false;
  return true;
}

// args.local_rank of the option is asked for somewhere, for more than a name.
bool is_asked_for(const Program& program) {
  for (const diagnose::Module* module : program.modules())
    for (diagnose::NodeId id = 0; id < module->tree().size(); ++id) {
      const Ref use{module, id};
      if (use.kind() == diagnose::Kind::attribute &&
          use.child(diagnose::Field::attribute).text() == "local_rank" && !is_put_aside(use))
        return true;
    }
  return false;
}

// if args.local_rank == -1: mp.spawn(...), else what a launcher starts, and tells by the option.
bool is_way_without_launcher(const Program& program, const CallRef& spawn) {
  return program.under(spawn.ref(), [](Ref condition, bool holds) {
    return holds && condition.kind() == diagnose::Kind::comparison &&
           facts::contains(condition.text(), ".local_rank") &&
           (facts::contains(condition.text(), "-1") || facts::contains(condition.text(), "< 0") ||
            facts::contains(condition.text(), "None"));
  });
}

// mp.spawn(worker, ...), which hands out the index, unless the script also calls worker(...) itself
// for ranks that a launcher starts and tells by the option.
bool spawns_its_ranks(const Program& program) {
  const auto is_called_as_well = [&](const CallRef& spawn) {
    const auto& workers = program.sources(spawn.argument(0, "fn"));
    return std::any_of(workers.begin(), workers.end(), [&](const diagnose::Source& worker) {
      const auto function = program.enclosing_function(worker.ref.child(diagnose::Field::body));
      return worker.ref.kind() == diagnose::Kind::function && function &&
             !program.call_sites(function).empty();
    });
  };
  const auto spawns = program.calls(diagnose::Api::spawn);
  return std::any_of(spawns.begin(), spawns.end(), [&](const CallRef& spawn) {
    return (facts::is_reachable(program, spawn.ref()) ||
            facts::is_switched_off(program, spawn.ref())) &&
           !is_way_without_launcher(program, spawn) &&
           !(is_asked_for(program) && is_called_as_well(spawn));
  });
}

// dist.init_process_group(rank=args.rank) of an option, and nothing else: every process is started
// by hand.
bool is_told_its_rank(const Program& program) {
  const auto joins = program.calls(diagnose::Api::init_process_group);
  return std::any_of(joins.begin(), joins.end(), [&](const CallRef& join) {
    const auto& sources = program.sources(join.keyword("rank"));
    return !sources.empty() &&
           std::all_of(sources.begin(), sources.end(), [](const diagnose::Source& source) {
             return source.how == diagnose::Source::How::argument;
           });
  });
}

// An option of submitit, or one that nothing reads in processes that are started by hand. Where it
// is not read otherwise, it is there for torch.distributed.launch, which stops without it.
bool may_be_for_another(const Program& program) {
  if (facts::speaks_of(program, "distributed.launch") || program.mentions("[\"local_rank\"]") ||
      program.mentions("['local_rank']") || program.mentions("--launcher"))
    return false;
  return program.mentions("JobEnvironment") ||
         (!is_asked_for(program) && is_told_its_rank(program));
}

// A sampler for ranks that a framework out of sight joins; accelerate launch passes no option.
bool has_ranks_of_a_framework(const Program& program) {
  return program.uses(diagnose::Api::distributed_sampler) && !program.imports("accelerate") &&
         !program.imports("pytorch_lightning") && !program.imports("lightning");
}

// flags.DEFINE_integer("local_rank", 0, "") of absl, which takes no dash for an underscore.
void check_absl_flags(const Program& program, bool old_launcher, Report& report) {
  if (!old_launcher && !says_launch_module(program)) return;
  if (program.newest().torch < kDashVersion) return;
  for (const CallRef& option : program.calls_named("DEFINE_integer")) {
    if (program.string(option.positional(0)).value_or("") != "local_rank" ||
        !program.mentions(".local_rank"))
      continue;
    Finding& finding = report.at(
        option.positional(0), old_launcher ? Confidence::certain : Confidence::likely,
        "torch.distributed.launch passes --local-rank with a dash since PyTorch 2.0: absl "
        "exits with an unknown command line flag");
    if (!old_launcher) finding.severity = Severity::warning;
    finding.help = "Start it with torchrun, and read the LOCAL_RANK variable.";
  }
}

// A script beside this one takes the dash already: it runs with PyTorch 2, whatever the
// requirements say.
bool spells_dash_beside(const Program& program) {
  return program.any_beside(
      [](std::string_view text) { return facts::contains(text, "--local-rank"); });
}

// In the quotes that the line has.
void accept_both(Ref spelt, Finding& finding) {
  const std::string written(spelt.text());
  const char quote = written.front() == '\'' ? '\'' : '"';
  replace(spelt, std::string(1, quote) + "--local-rank" + quote + ", " + written,
          "Accept both spellings", finding);
}

struct Launchers {
  bool old_launcher = false;  // torch.distributed.launch starts it
  bool only_python = false;   // all lines do without a launcher
  bool otherwise = false;     // all lines that are known pass no such option
};

// Nothing where lines say that no launcher passes the option. A line of torchrun does not mend the
// one of the old launcher that a shell script runs; where a README shows both, one is for older
// versions.
std::optional<Launchers> launchers_of(const Program& program) {
  Launchers out;
  out.only_python = !program.launches().empty();
  bool shown_only = true;
  bool torchrun = false;
  bool others = !program.launches().empty();
  for (const LaunchLine& launch : program.launches()) {
    if (launch.launcher == Launcher::deepspeed) return std::nullopt;
    torchrun = torchrun || launch.launcher == Launcher::torchrun;
    out.only_python = out.only_python && launch.launcher == Launcher::python;
    others =
        others && (launch.launcher == Launcher::python || launch.launcher == Launcher::torchrun);
    if (launch.launcher != Launcher::launch_module) continue;
    out.old_launcher = true;
    shown_only = shown_only && launch.is_example;
  }
  // An option of the program for a launcher (--launcher pytorch) is for lines that are not there.
  out.otherwise = others && !program.mentions("--launcher");
  return torchrun && shown_only ? std::nullopt : std::optional(out);
}

// A parser without any such option, in every version of PyTorch.
void check_missing_rank_option(const Program& program, std::string_view launcher, Report& report) {
  for (const CallRef& parse : facts::parsers_without_rank(program)) {
    report
        .at(parse.ref(), Confidence::certain,
            std::string(launcher) +
                ", and this parser has no such option: every rank exits with unrecognized "
                "arguments")
        .help = "Start it with torchrun, which passes nothing, and read LOCAL_RANK.";
  }
}

// deepspeed train.py, also on one GPU; `--no_local_rank` leaves the option out.
bool is_passed_by_deepspeed(const Program& program) {
  const auto& launches = program.launches();
  return std::any_of(launches.begin(), launches.end(), [](const LaunchLine& launch) {
    return launch.launcher == Launcher::deepspeed && !launch.flags.contains("no_local_rank") &&
           !launch.flags.contains("no-local-rank");
  });
}

}  // namespace

void check_launch_module_local_rank_spelling(const Program& program, Report& report) {
  if (is_passed_by_deepspeed(program))
    check_missing_rank_option(program, "the deepspeed launcher passes --local_rank", report);
  const auto started = launchers_of(program);
  if (!started) return;
  const bool old_launcher = started->old_launcher;
  if (old_launcher)
    check_missing_rank_option(program, "torch.distributed.launch passes --local-rank", report);
  const bool starts_its_own = spawns_its_ranks(program) || starts_its_ranks(program);
  const bool overwritten = is_overwritten(program);
  if (program.calls_named("parse_known_args").empty())
    check_absl_flags(program, old_launcher, report);
  for (const CallRef& option : program.calls_named("add_argument")) {
    bool underscore = false;
    bool dash = false;
    Ref spelt;
    for (std::size_t i = 0; const Ref name = option.positional(i); ++i) {
      const std::string text = program.string(name).value_or("");
      if (text == "--local_rank") spelt = name;
      underscore = underscore || text == "--local_rank";
      dash = dash || text == "--local-rank";
    }
    if (!underscore || dash || program.imports("deepspeed")) continue;
    if (facts::may_leave_unknown_options(program, option)) continue;
    if (dash_is_accepted(program, option) || !facts::is_reachable(program, option.ref())) continue;
    // A default from the environment is meant for torchrun, or for launch --use_env.
    const bool reads_environment = comes_from_variable(program, option.keyword("default"));
    const bool demanded = overwritten && is_demanded(program, option);
    const bool does_without = starts_its_own || (overwritten && !demanded);
    if (!old_launcher && (reads_environment || (does_without && !says_launch_module(program)) ||
                          (!facts::is_distributed(program) && !has_ranks_of_a_framework(program))))
      continue;
    Finding& finding = report.at(
        spelt, old_launcher ? Confidence::certain : Confidence::likely,
        demanded && !old_launcher
            ? "the parser demands --local_rank, which torchrun does not pass and "
              "torch.distributed.launch spells with a dash since PyTorch 2.0: every rank exits"
            : "torch.distributed.launch passes --local-rank with a dash since PyTorch 2.0: this "
              "parser exits with unrecognized arguments");
    if (!old_launcher) finding.severity = Severity::warning;
    // A comment says how the script is started.
    const bool says_torchrun = !old_launcher && facts::speaks_of(program, "torchrun --");
    // All lines that are known start it without a launcher, and no comment names one; or what a
    // comment says of the old launcher is said of lines that are there.
    const bool without = (started->otherwise && !shows_command_of_its_own(program)) ||
                         (started->only_python && !facts::speaks_of(program, "distributed.launch"));
    if (program.newest().torch < kDashVersion || says_torchrun || without ||
        (!old_launcher && may_be_for_another(program)))  // nothing fails before the upgrade
      tell_as_note(finding);
    finding.help = "Accept both spellings, or better use torchrun and the LOCAL_RANK variable.";
    if (program.newest().torch >= kDashVersion || spells_dash_beside(program))
      accept_both(spelt, finding);
  }
}

}  // namespace bench::pitfalls
