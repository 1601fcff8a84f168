#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/edits.hpp"
#include "scenarios/pitfalls/facts.hpp"

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

CallRef local_rank_option(const Program& program) {
  for (const CallRef& option : program.calls_named("add_argument"))
    for (std::size_t i = 0; const Ref name = option.positional(i); ++i) {
      const std::string text = program.string(name).value_or("");
      if (text == "--local_rank" || text == "--local-rank") return option;
    }
  return {};
}

}  // namespace

void check_torchrun_with_args_local_rank(const Program& program, Report& report) {
  const CallRef option = local_rank_option(program);
  if (!option || reads_environment(program) || program.imports("deepspeed") ||
      program.framework_distributes())
    return;
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
             module->text(module->tree().child(id, Field::attribute)) == "local_rank";
  if (!used || !facts::is_distributed(program)) return;
  Finding& finding = report.at(
      option.ref(), torchrun ? Confidence::certain : Confidence::check,
      "torchrun passes no --local_rank: every rank keeps the default, and all use GPU 0 or none");
  if (!torchrun) finding.severity = Severity::info;
  finding.help = "Read it from the environment: int(os.environ[\"LOCAL_RANK\"]).";
  if (option.keyword("default") && !option.module->import_path("os").empty())
    replace(option.keyword("default"),
            "int(os.environ.get(\"LOCAL_RANK\", " + std::string(option.keyword("default").text()) +
                "))",
            "Take the default from LOCAL_RANK", finding);
}

}  // namespace bench::pitfalls
