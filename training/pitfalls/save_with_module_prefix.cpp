// A checkpoint of the wrapper, whose names begin with "module.", loaded into the bare model.
#include "training/pitfalls/classifier.hpp"
#include "training/pitfalls/scratch_folder.hpp"
#include "training/pitfalls/state_experiments.hpp"

#include <torch/serialize.h>

namespace bench::training {
namespace {

constexpr std::int64_t kSavedTrained = 1500;
constexpr std::int64_t kSavedValidated = 1000;

// What a wrapper is to a checkpoint: a module whose only child is called "module".
struct WrapperModule : torch::nn::Module {
  explicit WrapperModule(const Part& inner) { register_module("module", inner); }
};

// load_state_dict(strict=False): names that the file lacks are passed over. Parameters loaded.
int load_what_fits(torch::serialize::InputArchive& archive, const torch::nn::Module& module) {
  const torch::NoGradGuard no_grad;
  int loaded = 0;
  for (const auto& parameter : module.named_parameters(/*recurse=*/false)) {
    at::Tensor value;
    if (!archive.try_read(parameter.key(), value)) continue;
    parameter.value().copy_(value);
    ++loaded;
  }
  for (const auto& child : module.named_children()) {
    torch::serialize::InputArchive inner;
    if (archive.try_read(child.key(), inner)) loaded += load_what_fits(inner, *child.value());
  }
  return loaded;
}

// The trained values in a model on the CPU, which is what a checkpoint holds.
std::unique_ptr<ZooModel> cpu_copy(const Model& trained) {
  auto copy = std::make_unique<ZooModel>(classifier(), 0);
  const auto from = trained.parameters();
  const auto to = copy->parameters();
  const torch::NoGradGuard no_grad;
  for (std::size_t i = 0; i < to.size(); ++i) to[i].tensor.copy_(from[i].tensor.cpu());
  return copy;
}

std::unique_ptr<ZooModel> train_and_copy(Lab& lab) {
  const Samples train = fashion_samples(0, kSavedTrained, lab.device());
  const auto model = lab.model(classifier(), lab.seed());
  const auto ddp = lab.wrap(*model);
  std::vector<std::int64_t> order;
  for (std::int64_t i = lab.rank(); i < kSavedTrained; i += lab.world_size()) order.push_back(i);
  train_epoch(lab, *ddp, *model, train, order, 10, 0.05);
  return cpu_copy(*model);
}

}  // namespace

void save_with_module_prefix(Lab& lab) {
  const auto model = train_and_copy(lab);
  Json& evidence = lab.evidence();
  evidence["collectives"] = Json::array();  // hundreds of equal all-reduces show nothing here
  const ScratchFolder folder;
  const std::string file = folder.file("checkpoint.pt");
  {
    torch::serialize::OutputArchive archive;
    lab.cured() ? model->torch_module()->save(archive)
                : WrapperModule(model->torch_module()).save(archive);
    archive.save_to(file);
  }
  for (const NamedTensor& parameter : model->parameters()) {
    evidence["saved_keys"].push_back((lab.cured() ? "" : "module.") + parameter.name);
    evidence["wanted_keys"].push_back(parameter.name);
  }
  ZooModel fresh(classifier(), lab.seed() + 1);
  evidence["keys_loaded"] = 0;
  lab.attempt([&] {
    torch::serialize::InputArchive archive;
    archive.load_from(file);
    if (lab.form() == "strict") {
      fresh.torch_module()->load(archive);
      evidence["keys_loaded"] = fresh.parameters().size();
    } else {
      evidence["keys_loaded"] = load_what_fits(archive, *fresh.torch_module());
    }
  });
  const Samples validation = fashion_samples(kSavedTrained, kSavedValidated, at::kCPU);
  evidence["trained_accuracy"] = accuracy(*model, validation);
  evidence["loaded_accuracy"] = accuracy(fresh, validation);
}

}  // namespace bench::training
