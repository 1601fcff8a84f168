#include "scenarios/pitfalls/frameworks/horovod_collectives.hpp"

#include <algorithm>
#include <string>

namespace bench::pitfalls {

namespace {

constexpr std::string_view kPackage = "horovod.torch.";

bool ranks_meet_in(std::string_view name) {
  static constexpr std::string_view kNames[] = {"allreduce",
                                                "allgather",
                                                "alltoall",
                                                "reducescatter",
                                                "broadcast",
                                                "grouped_allreduce",
                                                "barrier",
                                                "join",
                                                "broadcast_parameters",
                                                "broadcast_object",
                                                "broadcast_optimizer_state",
                                                "allgather_object"};
  if (name.ends_with('_')) name.remove_suffix(1);  // in place
  if (name.ends_with("_async")) name.remove_suffix(std::string_view("_async").size());
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

}  // namespace

std::vector<CallRef> horovod_collectives(const Program& program) {
  std::vector<CallRef> out;
  if (!program.uses(diagnose::Api::hvd_init)) return out;
  for (const diagnose::Module* module : program.modules())
    for (const diagnose::Call& made : module->calls()) {
      const CallRef call{module, &made};
      const std::string_view path = made.path;
      if (path.starts_with(kPackage) &&
          ranks_meet_in(std::string_view(path).substr(kPackage.size())) &&
          !call.keyword("process_set"))
        out.push_back(call);
    }
  return out;
}

}  // namespace bench::pitfalls
