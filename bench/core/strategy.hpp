// How the GPUs share the work of a step. A header of its own: a new strategy then compiles anew
// only what decides by strategies, not everything that carries a case. Names and aliases: case.hpp.
#pragma once

namespace bench {

enum class Strategy : int { single, data_parallel, libtorch_data_parallel, distributed };

}  // namespace bench
