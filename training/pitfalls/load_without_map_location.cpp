// A checkpoint of rank 0 is loaded on every rank: without map_location its tensors return to the
// GPU that the file names.
#include "training/devices/vgpu.hpp"
#include "training/models/layers.hpp"
#include "training/pitfalls/scratch_folder.hpp"
#include "training/pitfalls/state_experiments.hpp"

#include <torch/serialize.h>

namespace bench::training {
namespace {

constexpr std::int64_t kCheckpointWidth = 512;
constexpr int kSavingGpu = 0;

}  // namespace

void load_without_map_location(Lab& lab) {
  const ScratchFolder folder;
  const std::string file = folder.file("checkpoint.pt");
  {
    const ZooModel model(linear({.in = kCheckpointWidth, .out = kCheckpointWidth}), lab.seed());
    torch::serialize::OutputArchive archive;
    archive.write("gpu", torch::tensor(kSavingGpu));
    for (const NamedTensor& parameter : model.parameters())
      archive.write(parameter.name, parameter.tensor.detach());
    archive.save_to(file);
  }
  torch::serialize::InputArchive archive;
  archive.load_from(file);
  at::Tensor saved_on;
  archive.read("gpu", saved_on);
  const int gpu = lab.cured() ? lab.rank() : saved_on.item<int>();

  std::vector<std::uint64_t> before;
  for (int i = 0; i < lab.world_size(); ++i) before.push_back(current_bytes(i));
  std::vector<at::Tensor> loaded;
  for (const char* name : {"weight", "bias"}) {
    at::Tensor value;
    archive.read(name, value);
    loaded.push_back(to_vgpu(value, gpu));
  }
  Json& evidence = lab.evidence();
  evidence["own_gpu"] = lab.rank();
  for (int i = 0; i < lab.world_size(); ++i)
    evidence["checkpoint_bytes_by_gpu"].push_back(current_bytes(i) -
                                                  before[static_cast<std::size_t>(i)]);
}

}  // namespace bench::training
