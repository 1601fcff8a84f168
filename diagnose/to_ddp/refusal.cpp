#include "diagnose/to_ddp/refusal.hpp"

#include <algorithm>

namespace bench::diagnose {

std::string reason_to_refuse(const Program& program) {
  const auto& wraps = program.wraps();
  const auto of_kind = [&](Wrapper kind) {
    return std::find_if(wraps.begin(), wraps.end(),
                        [&](const Wrap& wrap) { return wrap.kind == kind; });
  };
  const auto joins = program.calls(Api::init_process_group);
  const auto ddp = of_kind(Wrapper::ddp);
  if (of_kind(Wrapper::data_parallel) == wraps.end() || (joins.empty() && ddp == wraps.end()))
    return {};
  const CallRef mode = joins.empty() ? ddp->call : joins.front();
  return (joins.empty() ? "wraps in DistributedDataParallel" : "joins a process group") +
         std::string(" already (line ") +
         std::to_string(mode.module->tree().line_of(mode.call->node)) +
         "): start it with torchrun in the mode that does";
}

}  // namespace bench::diagnose
