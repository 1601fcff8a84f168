#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/facts.hpp"

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Field;
using diagnose::Kind;
using diagnose::kNoNode;
using diagnose::LaunchLine;
using diagnose::Module;
using diagnose::NodeId;

namespace {

std::optional<std::string> problem_of(const std::string& devices) {
  if (facts::contains(devices, "GPU-") || facts::contains(devices, "MIG-")) return std::nullopt;
  const auto parsed = diagnose::parse_visible_devices(devices);
  return parsed.problem.empty() ? std::nullopt : std::optional(parsed.problem);
}

// Calls that initialise CUDA in this process; is_available() counts devices in the driver, which
// reads the variable once. DataParallel compares the devices' memory when it is built.
bool starts_cuda(const CallRef& call) {
  if (call.call->name == "is_available" &&
      call.module->qualified(call.call->function) == "torch.cuda.is_available")
    return true;
  if (call.call->name == "cuda" && call.receiver()) return true;
  const Api api = call.call->api;
  return api == Api::set_device || api == Api::current_device || api == Api::cuda_synchronize ||
         api == Api::data_parallel;
}

}  // namespace

void check_visible_devices_malformed_or_late(const Program& program, Report& report) {
  for (const LaunchLine& launch : program.launches()) {
    const auto found = launch.environment.find("CUDA_VISIBLE_DEVICES");
    if (found == launch.environment.end() || !found->second.literal) continue;
    if (const auto problem = problem_of(found->second.text))
      report
          .at_word(launch.file, found->second, Confidence::certain,
                   "CUDA_VISIBLE_DEVICES=" + found->second.text + ": " + *problem)
          .help = "List each index once, separated by commas.";
  }
  for (const Module* module : program.modules())
    for (const NodeId node : module->nodes_of(Kind::assignment)) {
      const Ref assignment{module, node};
      const Ref target = assignment.child(Field::left);
      if (target.kind() != Kind::subscript ||
          program.environment_name(target) != "CUDA_VISIBLE_DEVICES")
        continue;
      const Ref value = assignment.child(Field::right);
      // A parameter or an option may be "cpu" in the one call that is seen.
      const bool written = program.sources(value).size() == 1 &&
                           program.enclosing_function(program.sources(value).front().ref) ==
                               program.enclosing_function(value);
      const auto text = written ? program.string(value) : std::nullopt;
      if (text)
        if (const auto problem = problem_of(*text))
          report.at(value, Confidence::certain, "CUDA_VISIBLE_DEVICES=" + *text + ": " + *problem)
              .help = "List each index once, separated by commas.";
      for (const auto& call : module->calls()) {
        const CallRef ref{module, &call};
        if (call.node >= node || !starts_cuda(ref) ||
            module->function_of(call.node) != module->function_of(node) ||
            !program.guards(ref.ref()).empty() || facts::exclusive(ref.ref(), assignment))
          continue;
        report
            .at(assignment, Confidence::certain,
                "CUDA is in use above this line: setting CUDA_VISIBLE_DEVICES now has no effect")
            .help = "Set it in the launch line, or at the top of the script.";
        break;
      }
    }
}

}  // namespace bench::pitfalls
