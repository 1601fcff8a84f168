// What runs once, in the process that starts the ranks afterwards.
#include "diagnose/model/program.hpp"

#include <algorithm>
#include <string_view>

namespace bench::diagnose {

namespace {

constexpr int kCallDepth = 5;

// Popen(["tensorboard", "--logdir", logs]): a command written out that is no Python and no
// launcher.
bool starts_other_program(const CallRef& process) {
  const Ref command = process.positional(0);
  if (!command || (command.kind() != Kind::list && command.kind() != Kind::string)) return false;
  const std::string_view text = command.text();
  for (const char* starter : {"python", "executable", "torchrun", "launch", "deepspeed", "mpirun",
                              "horovodrun", "srun", ".py", ".sh", "bash"})
    if (text.find(starter) != std::string_view::npos) return false;
  return true;
}

// A function that the ranks run, or one that such a function calls: what a rank starts is none.
bool is_run_by_ranks(const Program& program, FunctionRef function, int depth = 0) {
  constexpr int kCallers = 3;
  if (!function || depth > kCallers) return false;
  const auto& sites = program.call_sites(function);
  return program.runs_in_ranks(function) ||
         std::any_of(sites.begin(), sites.end(), [&](const CallRef& site) {
           return is_run_by_ranks(program, program.enclosing_function(site.ref()), depth + 1);
         });
}

}  // namespace

bool Program::before_ranks(Ref node) const { return before_ranks(node, 0); }

bool Program::before_ranks(Ref node, int depth) const {
  if (!node || depth > kCallDepth) return false;
  const FunctionRef function = enclosing_function(node);
  if (is_run_by_ranks(*this, function)) return false;
  const auto is_below = [&](const CallRef& call) {
    return call.module == node.module && call.call->node > node.node &&
           enclosing_function(call.ref()) == function;
  };
  const auto starts_below = [&](const CallRef& start) {
    CallRef at = start;
    // run(worker, n) below, which starts them, or calls what does
    for (int calls = 0; calls < kCallDepth; ++calls) {
      if (is_below(at)) return true;
      const FunctionRef starter = enclosing_function(at.ref());
      if (!starter || starter == function) return false;
      const auto& sites = call_sites(starter);
      if (std::any_of(sites.begin(), sites.end(), is_below)) return true;
      if (sites.size() != 1) return false;
      at = sites.front();
    }
    return false;
  };
  const auto spawns = calls(Api::spawn);
  if (std::any_of(spawns.begin(), spawns.end(), starts_below)) return true;
  for (const std::string_view name : {"Popen", "Process"}) {
    const auto processes = calls_named(name);
    if (std::any_of(processes.begin(), processes.end(), [&](const CallRef& process) {
          return !starts_other_program(process) && starts_below(process);
        }))
      return true;
  }
  // The fallback for one GPU, worker(0, 1) beside mp.spawn(worker), does not keep ranks out of it.
  if (!function) return false;
  const auto& sites = call_sites(function);
  return !sites.empty() && std::all_of(sites.begin(), sites.end(), [&](const CallRef& site) {
    return before_ranks(site.ref(), depth + 1);
  });
}

}  // namespace bench::diagnose
