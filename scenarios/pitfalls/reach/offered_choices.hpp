// Options that offer a list of values: parser.add_argument("--data", choices=["a", "b"]).
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls::facts {

// The guard compares an option with a value that is neither one of its choices nor its default:
// `elif args.data == "c":` leads to code that no command line reaches.
bool is_for_no_choice(const Program& program, const diagnose::Guard& guard);

}  // namespace bench::pitfalls::facts
