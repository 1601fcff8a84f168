// How many devices a list of ids has, as far as the script and the defaults of its options tell.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

#include <cstdint>
#include <optional>

namespace bench::pitfalls {

// list(range(3)), [int(id) for id in "0,1,2".split(",")], list(range(len(args.gpus.split(","))))
// for an option that is "0,1,2" by default.
std::optional<std::int64_t> count_of_ids(const Program& program, Ref ids);

}  // namespace bench::pitfalls
