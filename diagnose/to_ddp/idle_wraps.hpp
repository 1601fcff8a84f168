// DataParallel around what nothing trains: a network that judges images, a copy that only hands on
// the weights it has loaded. DDP would add collectives to passes that need none.
#pragma once

#include "diagnose/model/program.hpp"

namespace bench::diagnose {

// No optimizer is given what is wrapped, and it is set to evaluation where it is wrapped, runs
// without gradients alone, or does not run at all. Sure only where all of this is seen.
bool wraps_nothing_trained(const Program& program, const Wrap& wrap);

// Something asks for the wrapper itself: model.module, the keys that it loads or saves.
bool is_used_as_wrapper(const Program& program, const Wrap& wrap);

}  // namespace bench::diagnose
