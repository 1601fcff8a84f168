// bench --scenario pitfalls: the laboratory.
#pragma once

#include "bench/cli/run_flags.hpp"

#include <string_view>

namespace bench::cli {

inline constexpr std::string_view kPitfallsScenario = "pitfalls";
inline constexpr std::string_view kPitfallsDescription =
    "every classic mistake made for real next to its cure: what it shows, what it costs";

int pitfalls_command(const RunFlags& flags);

}  // namespace bench::cli
