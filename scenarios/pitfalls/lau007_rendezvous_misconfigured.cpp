#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/judges.hpp"
#include "scenarios/pitfalls/laboratory/trial_prices.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"
#include "scenarios/pitfalls/ranks/nodes_of_job.hpp"

#include <algorithm>
#include <vector>

namespace bench::pitfalls {

using diagnose::Launcher;
using diagnose::LaunchLine;
using diagnose::LaunchWord;

namespace {

bool is_loopback(std::string_view host) {
  return host.starts_with("127.") || host.starts_with("localhost");
}

// The first node may call itself by the loopback address: its store listens on every interface, and
// the line for another node names the address to reach it by.
bool is_first_of_known_nodes(const Program& program, const LaunchLine& first) {
  if (first.flag("node-rank").value_or("") != "0") return false;
  return std::any_of(program.launches().begin(), program.launches().end(),
                     [&](const LaunchLine& other) {
                       const std::string rank = other.flag("node-rank").value_or("0");
                       const std::string address = other.flag("master-addr").value_or("");
                       return rank != "0" && !address.empty() && !is_loopback(address) &&
                              other.script.text == first.script.text;
                     });
}

// The line of the first node alone: those of the others may name the address that it has for them.
bool is_first_of_unknown_nodes(const Program& program, const LaunchLine& first) {
  if (first.flag("node-rank").value_or("") != "0" ||
      first.flag("rdzv-backend").value_or("static") != "static")
    return false;
  return std::none_of(program.launches().begin(), program.launches().end(),
                      [&](const LaunchLine& other) {
                        return other.flag("node-rank").value_or("0") != "0" &&
                               other.script.text == first.script.text;
                      });
}

// Also cfg.world_size of an object that is handed to the ranks: what the script puts there.
bool counts_nodes_somewhere(const Program& program, Ref size) {
  if (facts::counts_nodes(program, size)) return true;
  if (!size || size.kind() != diagnose::Kind::attribute) return false;
  const auto& module = *size.module;
  const auto& defs = module.defs_of(size.child(diagnose::Field::attribute).text(), true);
  return defs.size() == 1 &&
         facts::counts_nodes(program, size.with(module.defs()[defs.front()].value));
}

// world_size = gpus * nodes, with ranks that count on from node to node: all of them join one
// group.
bool joins_nodes(const Program& program) {
  const auto joins = program.calls(diagnose::Api::init_process_group);
  return facts::computes_global_rank(program) &&
         std::any_of(joins.begin(), joins.end(), [&](const CallRef& join) {
           return counts_nodes_somewhere(program, join.argument(3, "world_size"));
         });
}

bool starts_several_nodes(const Program& program) {
  const auto& launches = program.launches();
  return std::any_of(launches.begin(), launches.end(),
                     [](const LaunchLine& launch) { return launch.nodes().value_or(1) != 1; });
}

// The only thing that gives the address, whatever was in the environment.
bool stands_alone(const Program& program, Ref assignment) {
  const auto& guards = program.guards(assignment);
  return std::none_of(guards.begin(), guards.end(), [](const diagnose::Guard& guard) {
    return !facts::contains(guard.condition.text(), "__name__");
  });
}

// os.environ["MASTER_ADDR"] = "localhost" on every node of several.
void check_address_in_script(const Program& program, Report& report) {
  if (!joins_nodes(program)) return;
  const auto flag = [&](Ref value, std::string_view address) {
    Finding& finding =
        report.at(value, Confidence::likely,
                  "the ranks of all nodes meet at " + std::string(address) +
                      ": those of a second node look for rank 0 on their own machine until the "
                      "time-out");
    // An option for several nodes that nobody uses costs nothing.
    finding.severity = starts_several_nodes(program) ? Severity::warning : Severity::info;
    finding.help = "Take the address of the first node from an option or from MASTER_ADDR.";
  };
  const auto all = facts::settings_of(program, "MASTER_ADDR");
  if (all.size() == 1 && stands_alone(program, all.front())) {
    const Ref value = all.front().child(diagnose::Field::right);
    const auto given = program.evaluate(value);
    if (given.is_string() && !given.is_default && is_loopback(given.string))
      flag(value, given.string);
  }
  for (const CallRef& join : program.calls(diagnose::Api::init_process_group)) {
    const Ref method = join.argument(1, "init_method");
    const auto given = method ? program.evaluate(method) : diagnose::Value{};
    constexpr std::string_view kTcp = "tcp://";
    if (given.is_string() && !given.is_default && given.string.starts_with(kTcp) &&
        is_loopback(std::string_view(given.string).substr(kTcp.size())) &&
        counts_nodes_somewhere(program, join.argument(3, "world_size")))
      flag(method, given.string);
  }
}

void flag_loopback(const Program& program, const LaunchLine& launch, const LaunchWord& where,
                   const std::string& address, Report& report) {
  const bool may_differ = is_first_of_unknown_nodes(program, launch);
  Finding& finding =
      report.at_word(launch.file, where, may_differ ? Confidence::likely : Confidence::certain,
                     std::to_string(launch.nodes().value_or(1)) + " nodes meet at " + address +
                         (may_differ ? ": another node that is started with it waits for itself "
                                       "until the time-out"
                                     : ": every node waits for itself until the time-out"));
  if (may_differ) finding.severity = Severity::warning;
  finding.help = "Give an address of one node: --rdzv-backend=c10d --rdzv-endpoint=HOST:29500.";
}

// os.environ["MASTER_PORT"] = str(29500 + hash(job) % 1000) in each rank: the hash of a text is
// another one in every process.
void check_hashed_port(const Program& program, Report& report) {
  const bool same_salt = program.mentions("PYTHONHASHSEED");
  for (const diagnose::Module* module : program.modules())
    for (const diagnose::NodeId node : module->nodes_of(diagnose::Kind::assignment)) {
      const Ref assignment{module, node};
      const Ref target = assignment.child(diagnose::Field::left);
      if (same_salt || target.kind() != diagnose::Kind::subscript ||
          program.environment_name(target) != "MASTER_PORT" ||
          facts::only_before_ranks(program, assignment))
        continue;
      for (const Ref& made :
           facts::calls_behind(program, assignment.child(diagnose::Field::right))) {
        const CallRef call = program.as_call(made);
        const Ref function{call.module, call.call->function};
        const auto run = program.enclosing_function(made);
        if (function.text() != "hash" || program.callee(call) ||
            program.integer(call.positional(0)) || !run || !program.is_spawned(run))
          continue;
        report
            .at(made, Confidence::likely,
                "each rank hashes the text in a process of its own, whose salt differs: the ranks "
                "wait for each other at different ports until the time-out")
            .help = "Choose the port above mp.spawn and hand it to the ranks.";
        return;
      }
    }
}

// Two jobs on one machine, the first of which still runs when the second starts. Lines of several
// node ranks are one job.
bool runs_beside(const LaunchLine& first, const LaunchLine& second) {
  const auto rank = [](const LaunchLine& line) { return line.flag("node-rank").value_or(""); };
  return first.in_background && first.file == second.file && first.stretch == second.stretch &&
         first.command.line != second.command.line && !first.is_elsewhere && !second.is_elsewhere &&
         !first.is_job_step && !second.is_job_step && rank(first) == rank(second);
}

void check_shared_ports(const Program& program, Report& report) {
  const auto& launches = program.launches();
  for (std::size_t i = 0; i < launches.size(); ++i) {
    const LaunchLine& launch = launches[i];
    const std::string port = launch.port();
    if (launch.file == "<launch>" || port.empty()) continue;
    const bool taken =
        std::any_of(launches.begin(), launches.begin() + static_cast<std::ptrdiff_t>(i),
                    [&](const LaunchLine& first) {
                      return runs_beside(first, launch) && first.port() == port;
                    });
    if (!taken) continue;
    const auto flag = launch.flags.find("master-port");
    as_in_trial(
        report.at_word(launch.file, flag == launch.flags.end() ? launch.command : flag->second,
                       Confidence::likely,
                       "two jobs of this script use one port: the second cannot listen on it"),
        "port-in-use")
        .help = "Give each job a port of its own, or use --standalone.";
  }
}

// The processes that every line starts, where all are known.
std::int64_t fewest_processes(const Program& program) {
  std::int64_t fewest = 0;
  for (const LaunchLine& launch : program.launches()) {
    const bool torch =
        launch.launcher == Launcher::torchrun || launch.launcher == Launcher::launch_module;
    const auto count = torch ? launch.processes_per_node() : std::nullopt;
    if (!count) return 0;
    fewest = fewest == 0 ? *count : std::min(fewest, *count);
  }
  return fewest;
}

// os.environ["WORLD_SIZE"] = "1" over what the launcher set, for all of its ranks.
void check_fixed_world_size(const Program& program, Report& report) {
  const std::int64_t started = fewest_processes(program);
  if (started < 2 || !program.calls(diagnose::Api::spawn).empty()) return;
  const auto joins = program.calls(diagnose::Api::init_process_group);
  const bool asks_environment = std::any_of(joins.begin(), joins.end(), [&](const CallRef& join) {
    const Ref size = join.argument(3, "world_size");
    return !size || says_any(text_behind(program, size), {"world_size"});
  });
  if (!asks_environment) return;
  for (const Ref assignment : facts::settings_of(program, "WORLD_SIZE")) {
    if (!stands_alone(program, assignment) || !facts::is_reachable(program, assignment)) continue;
    const auto size = program.string(assignment.child(diagnose::Field::right));
    const auto fixed = size ? diagnose::to_integer(*size) : std::nullopt;
    if (!fixed || *fixed < 1 || *fixed >= started) continue;
    report
        .at(assignment, Confidence::likely,
            "the world size is set to " + *size + " over the launcher's, which starts " +
                std::to_string(started) + " processes: ranks that the group has no place for")
        .help = "Leave WORLD_SIZE to the launcher.";
  }
}

}  // namespace

void check_rendezvous_misconfigured(const Program& program, Report& report) {
  check_address_in_script(program, report);
  check_hashed_port(program, report);
  for (const LaunchLine& launch : program.launches()) {
    if (launch.launcher != Launcher::torchrun && launch.launcher != Launcher::launch_module)
      continue;
    const auto nodes = launch.nodes().value_or(1);
    const auto word = [&](const char* name) -> const LaunchWord& {
      const auto found = launch.flags.find(name);
      return found == launch.flags.end() ? launch.command : found->second;
    };
    if (launch.flags.contains("standalone") && nodes > 1)
      report
          .at_word(launch.file, word("standalone"), Confidence::certain,
                   "--standalone with " + std::to_string(nodes) + " nodes: each node trains alone")
          .help = "Use --rdzv-backend=c10d --rdzv-endpoint=HOST:PORT --rdzv-id=JOB.";
    if (nodes > 1 && !launch.flags.contains("standalone")) {
      const std::string backend = launch.flag("rdzv-backend").value_or("static");
      const std::string address =
          launch.flag(backend == "static" ? "master-addr" : "rdzv-endpoint")
              .value_or(backend == "static" && !launch.flags.contains("master-addr") &&
                                !launch.flags.contains("rdzv-endpoint")
                            ? "127.0.0.1"
                            : "");
      if (is_loopback(address) && !is_first_of_known_nodes(program, launch))
        flag_loopback(program, launch, word("nnodes"), address, report);
    }
    if (launch.flag("rdzv-backend").value_or("") == "c10d" && launch.flags.contains("master-addr"))
      report
          .at_word(launch.file, word("master-addr"), Confidence::certain,
                   "--master-addr is ignored with --rdzv-backend=c10d")
          .help = "Use --rdzv-endpoint=HOST:PORT.";
  }
  check_shared_ports(program, report);
  check_fixed_world_size(program, report);
}

namespace {

bool port_taken(const RunEvidence& run) {
  return !run.error_with("failed to listen on any local network address").empty();
}

bool ranks_missing(const RunEvidence& run) {
  return run.number("processes_started") < run.number("world_size_expected") &&
         run.first("error") != nullptr;
}

}  // namespace

void judge_rendezvous_misconfigured(const RunEvidence& run, RunReport& report) {
  const std::string error = run.error_with("");
  if (port_taken(run)) {
    Finding& finding = report.add(Confidence::certain,
                                  "the rendezvous port is in use: two jobs share MASTER_PORT");
    finding.help = "A free port for each job; on one node --standalone chooses one.";
    finding.evidence.emplace_back("error", error);
  }
  if (!ranks_missing(run)) return;
  Finding& finding =
      report.add(Confidence::certain,
                 "the world size is " + figure(run.number("world_size_expected")) + " and " +
                     figure(run.number("processes_started")) + " processes came to the rendezvous");
  finding.help = "Start as many processes as WORLD_SIZE says, each with a rank of its own.";
  finding.evidence.emplace_back("error", error);
}

Price price_rendezvous_misconfigured(const RunEvidence& broken, const RunEvidence& cured) {
  Price price;
  const std::string error = broken.error_with("");
  price.reproduced = port_taken(broken) || ranks_missing(broken);
  price.gone = cured.first("rendezvous_seconds") != nullptr && cured.first("error") == nullptr;
  price.cost = broken.number("rendezvous_seconds");
  price.unit = port_taken(broken) ? "s until the error" : "s until the error (time-out set to 1 s)";
  price.seen = error.substr(0, error.find('\n')).substr(0, 160);
  return price;
}

}  // namespace bench::pitfalls
