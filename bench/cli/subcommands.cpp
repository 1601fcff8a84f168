#include "bench/cli/subcommands.hpp"

#include "bench/cli/commands.hpp"
#include "bench/launch/mock_worker.hpp"
#include "diagnose/command.hpp"

namespace bench::cli {
namespace {

constexpr Subcommand kSubcommands[] = {
    {"list", "scenarios|models|machines|rules [--format json]", "what this program knows by name",
     list_command},
    {"doctor", "[--format json]", "what this machine can and cannot do, and why", doctor_command},
    {"predict", "--model M --machine M,... [--batch-per-gpu N] [--strategy S,...] [flags]",
     "what a machine that is not here would do: time, scaling, memory", predict_command, true},
    {"calibrate", "[--gpus 0] [--out machine.toml] [--device cuda|cpu] [--quick]",
     "measures this machine's GPU and writes a machine file for predict", calibrate_command, true},
    {"validate", "[--models DIR] [--source TEXT] [--format text|json|markdown]",
     "published training steps against what the simulator predicts", validate_command},
    {"report", "RUN... [--out FILE.html] [--format terminal|html|markdown|json|csv]",
     "stored runs, rendered again", report_command},
    {"trace", "RUN [--out FILE.json] [--case TEXT]", "a run's steps as a Chrome trace",
     trace_command},
    {"diagnose", "PATH... [--launch CMD] [--gpus N] [--format text|json|sarif|github|markdown]",
     "pitfalls in training scripts, launch lines and configs", diagnose_command, true},
    {"explain", "RULE", "one pitfall: what, why, what it costs, the fix",
     diagnose::explain_command},
    {"worker", "--job FILE", "", worker_command},  // hidden: see mock_worker.hpp
};

}  // namespace

std::span<const Subcommand> subcommands() { return kSubcommands; }

const Subcommand* find_subcommand(std::string_view name) {
  for (const auto& row : kSubcommands) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

}  // namespace bench::cli
