// Loss scalers that nothing here switches on: GradScaler(enabled=args.amp) without --amp anywhere.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

#include <string>

namespace bench::pitfalls::facts {

// "nothing here switches the scaler on": each scaler that the program makes is disabled, or is not
// made, by the default of an option that no launch line gives, or by the config files. Empty where
// one of them may scale, and where the line itself runs only with such an option.
std::string no_scaler_switched_on(const Program& program, Ref line);

}  // namespace bench::pitfalls::facts
