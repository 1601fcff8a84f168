#include "scenarios/pitfalls/ranks/notebook_ranks.hpp"

#include <algorithm>

namespace bench::pitfalls::facts {

using diagnose::Api;

bool is_notebook_of_one_process(const Program& program) {
  if (!program.is_notebook() || !program.launches().empty()) return false;
  const auto stands_in_cells = [&](const CallRef& call) { return call.module == &program.root(); };
  for (const Api api : {Api::init_process_group, Api::spawn, Api::hvd_init, Api::accelerator,
                        Api::lightning_trainer, Api::hf_trainer, Api::get_rank})
    if (const auto calls = program.calls(api);
        std::any_of(calls.begin(), calls.end(), stands_in_cells))
      return false;
  for (const char* start : {"notebook_launcher", "elastic_launch", "launch", "start_processes",
                            "Process", "Popen", "run", "system"})
    if (const auto calls = program.calls_named(start);
        std::any_of(calls.begin(), calls.end(), stands_in_cells))
      return false;
  const auto& wraps = program.wraps();
  return std::none_of(wraps.begin(), wraps.end(), [&](const diagnose::Wrap& wrap) {
    return wrap.kind == diagnose::Wrapper::ddp && stands_in_cells(wrap.call);
  });
}

}  // namespace bench::pitfalls::facts
