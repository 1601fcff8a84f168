// The state dict of the wrapper, whose keys begin with "module.", loaded into the bare model.
#include "training/devices/vgpu.hpp"
#include "training/pitfalls/classifier.hpp"
#include "training/pitfalls/scratch_folder.hpp"
#include "training/pitfalls/state_experiments.hpp"

#include <torch/serialize.h>

namespace bench::training {
namespace {

constexpr std::int64_t kSavedTrained = 1500;
constexpr std::int64_t kSavedValidated = 1000;

// As torch.save(state_dict): names and values.
void save_state(const Model& model, const std::string& prefix, const std::string& file) {
  torch::serialize::OutputArchive archive;
  for (const NamedTensor& parameter : model.parameters())
    archive.write(prefix + parameter.name, parameter.tensor.detach().cpu());
  archive.save_to(file);
}

// load_state_dict; without `strict`, names that the file lacks are passed over. Names loaded.
int load_state(const Model& model, const std::string& file, bool strict) {
  torch::serialize::InputArchive archive;
  archive.load_from(file);
  const torch::NoGradGuard no_grad;
  int loaded = 0;
  for (const NamedTensor& parameter : model.parameters()) {
    at::Tensor value;
    if (strict) {
      archive.read(parameter.name, value);
    } else if (!archive.try_read(parameter.name, value)) {
      continue;
    }
    parameter.tensor.copy_(to_vgpu(value, parameter.tensor.device().index()));
    ++loaded;
  }
  return loaded;
}

}  // namespace

void save_with_module_prefix(Lab& lab) {
  const ScratchFolder folder;
  const std::string file = folder.file("checkpoint.pt");
  const Samples train = fashion_samples(0, kSavedTrained, lab.device());
  const Samples validation = fashion_samples(kSavedTrained, kSavedValidated, lab.device());
  const auto model = lab.model(classifier(), lab.seed());
  const auto ddp = lab.wrap(*model);
  std::vector<std::int64_t> order;
  for (std::int64_t i = lab.rank(); i < kSavedTrained; i += lab.world_size()) order.push_back(i);
  train_epoch(lab, *ddp, *model, train, order, 10, 0.05);

  const std::string prefix = lab.cured() ? "" : "module.";
  save_state(*model, prefix, file);
  const auto fresh = lab.model(classifier(), lab.seed() + 1);
  Json& evidence = lab.evidence();
  evidence["collectives"] = Json::array();  // hundreds of equal all-reduces show nothing here
  for (const NamedTensor& parameter : model->parameters()) {
    evidence["saved_keys"].push_back(prefix + parameter.name);
    evidence["wanted_keys"].push_back(parameter.name);
  }
  evidence["keys_loaded"] = 0;
  lab.attempt([&] { evidence["keys_loaded"] = load_state(*fresh, file, lab.form() == "strict"); });
  evidence["trained_accuracy"] = accuracy(*model, validation);
  evidence["loaded_accuracy"] = accuracy(*fresh, validation);
}

}  // namespace bench::training
