#include "scenarios/pitfalls/own_ranks.hpp"

#include "scenarios/pitfalls/facts.hpp"

namespace bench::pitfalls {

bool has_ranks_of_its_own(const Program& program) {
  if (!program.uses(diagnose::Api::hvd_init))
    return facts::is_distributed(program) && !program.framework_distributes();
  for (const std::string_view package : {"pytorch_lightning", "lightning", "accelerate"})
    if (program.imports(package)) return false;
  return program.uses(diagnose::Api::ddp) || !program.imports("ray");
}

}  // namespace bench::pitfalls
