// Options that the launch line has to give: without them the script wraps nothing, or leaves the
// batches on the CPU while DDP takes the model to the GPU.
#pragma once

#include "diagnose/to_ddp/reached_code.hpp"

#include <string>
#include <vector>

namespace bench::diagnose {

// "--multi_gpu" for a condition that is an option which is off unless it is given; empty otherwise.
std::string launch_flag_of(const Program& program, Ref condition);

// "--cuda", "--use_gpu True" for the options under which the script puts things on a GPU:
// if args.cuda: net.cuda(), "cuda" if args.use_gpu else "cpu".
std::vector<std::string> flags_of_gpu(const ReachedCode& reached);

void add_once(std::vector<std::string>& flags, const std::string& flag);

}  // namespace bench::diagnose
