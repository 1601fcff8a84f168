#include "scenarios/pitfalls/checks.hpp"

#include <algorithm>
#include <map>

namespace bench::pitfalls {

using diagnose::Launcher;
using diagnose::LaunchLine;
using diagnose::LaunchWord;

namespace {

bool is_loopback(std::string_view host) {
  return host.starts_with("127.") || host.starts_with("localhost");
}

}  // namespace

void check_rendezvous_misconfigured(const Program& program, Report& report) {
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
      if (is_loopback(address))
        report
            .at_word(launch.file, word("nnodes"), Confidence::certain,
                     std::to_string(nodes) + " nodes meet at " + address +
                         ": every node waits for itself until the time-out")
            .help = "Give an address of one node: --rdzv-backend=c10d --rdzv-endpoint=HOST:29500.";
    }
    if (launch.flag("rdzv-backend").value_or("") == "c10d" && launch.flags.contains("master-addr"))
      report
          .at_word(launch.file, word("master-addr"), Confidence::certain,
                   "--master-addr is ignored with --rdzv-backend=c10d")
          .help = "Use --rdzv-endpoint=HOST:PORT.";
  }
  std::map<std::string, const LaunchLine*> ports;
  for (const LaunchLine& launch : program.launches()) {
    if (launch.file == "<launch>" || !launch.flag("master-port")) continue;
    const std::string key = launch.file + ":" + *launch.flag("master-port");
    const auto [known, fresh] = ports.emplace(key, &launch);
    const bool background =
        std::any_of(launch.script_arguments.begin(), launch.script_arguments.end(),
                    [](const LaunchWord& each) { return each.text == "&"; });
    if (!fresh && background)
      report
          .at_word(launch.file, launch.flags.at("master-port"), Confidence::likely,
                   "two jobs of this script use one port: the second cannot listen on it")
          .help = "Give each job a port of its own, or use --standalone.";
  }
}

}  // namespace bench::pitfalls
