// Devices that a script writes as one number for all of its processes: "cuda:0", .cuda(0),
// .to(device_ids[0]). A script that is turned into one for DDP names the GPU of the rank instead.
#pragma once

#include "diagnose/model/program.hpp"

#include <string>
#include <vector>

namespace bench::diagnose {

struct FixedDevice {
  enum class Form : std::uint8_t { device, text, index };

  Ref where;
  Form form = Form::index;
  bool needs_gpu = false;  // the line touches the GPU, so ranks have theirs by then

  // The expression for the rank's own GPU: torch.device("cuda", local_rank).
  std::string for_rank(const std::string& local_rank) const;
  // The same where only the GPU that was set is known: torch.device("cuda").
  std::string for_current() const;
  // It says 0 in so many words, which is the GPU of a process without ranks in any case.
  bool is_first() const;
};

// Those of one file, in source order, none inside another.
std::vector<FixedDevice> fixed_devices(const Program& program, const Module& module);

// 0 and "cuda:0".
bool is_one_gpu(const Program& program, Ref value);

// 0 of parser.add_argument("--gpu", type=int, default=0), where the source is such an option: what
// it is unless a run says otherwise.
Ref default_of_option(const Program& program, const Source& source);

// os.environ["CUDA_VISIBLE_DEVICES"] = "", of runs on the CPU: it chooses no GPU.
bool hides_all_gpus(const Program& program, Ref setting);

}  // namespace bench::diagnose
