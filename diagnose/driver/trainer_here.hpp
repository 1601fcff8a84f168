// A Trainer's arguments as a run on this machine has them, where the script asks the machine:
// "gpu" if torch.cuda.is_available() else "cpu", torch.cuda.device_count(), DDPStrategy(...).
#pragma once

#include "diagnose/driver/trainer_reading.hpp"

namespace bench::diagnose {

// The same arguments, with a value for those of such a form. Visible GPUs that are not known are
// taken to be there, and device_count() is all of them. What depends on anything else stays
// unknown.
pitfalls::trainer::Use use_on(const Program& program, const pitfalls::trainer::Use& use,
                              const TrainerMachine& machine);

}  // namespace bench::diagnose
