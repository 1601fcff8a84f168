// No set_device: every rank allocates on GPU 0, which holds the models of all ranks.
#include "training/devices/vgpu.hpp"
#include "training/models/layers.hpp"
#include "training/pitfalls/experiments.hpp"

namespace bench::training {

void device_not_bound_to_rank(Lab& lab) {
  const int used = lab.cured() ? lab.rank() : 0;
  ZooModel model(linear({.in = 256, .out = 256}), lab.seed());
  move_model(model, vgpu_device(used));
  Json& evidence = lab.evidence();
  evidence["visible_gpus"] = lab.world_size();
  evidence["device"] = used;
  for (int gpu = 0; gpu < lab.world_size(); ++gpu)
    evidence["allocated_bytes"].push_back(current_bytes(gpu));
}

}  // namespace bench::training
