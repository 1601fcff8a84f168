// bench diagnose, with the predictions that the room diagnose/ cannot make itself.
#include "bench/cli/commands.hpp"
#include "bench/cli/pitfall_cost.hpp"
#include "diagnose/command.hpp"

namespace bench::cli {

int diagnose_command(const Arguments& typed) {
  return diagnose::diagnose_command(typed, pitfall_cost_predictor);
}

}  // namespace bench::cli
