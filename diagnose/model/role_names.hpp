// Which names say that a value is a rank, a local rank, a world size or a test of the rank: how
// people call them in scripts, options and environments.
#pragma once

#include "diagnose/model/module.hpp"

#include <string>
#include <string_view>

namespace bench::diagnose {

// What a value may be, as bits: mp.spawn's first argument is a rank and a local rank.
constexpr unsigned kRank = 1;
constexpr unsigned kLocalRank = 2;
constexpr unsigned kWorldSize = 4;
constexpr unsigned kDeviceCount = 8;
constexpr unsigned kSpawnRank = 16;

// Lower case, for comparing names.
std::string lowered(std::string_view text);

unsigned role_of_name(std::string_view name);
unsigned role_of_environment(std::string_view name);
// is_main_process, master and their kin: the name of a test of the rank.
bool is_main_name(std::string_view name);
// The word that names an expression: gpu for args.gpu, rank for cfg["rank"].
std::string_view last_word(Ref at);

}  // namespace bench::diagnose
