// DataParallel walks into lists: a list of images is not dealt out to the replicas, but every image
// is cut into its channels; a list of numbers goes whole to every replica.
#include "training/devices/recorder.hpp"
#include "training/devices/vgpu.hpp"
#include "training/models/layers.hpp"
#include "training/pitfalls/call_evidence.hpp"
#include "training/pitfalls/experiments.hpp"

namespace bench::training {
namespace {

constexpr std::int64_t kListed = 4;
constexpr std::int64_t kImageChannels = 3;
constexpr std::int64_t kImageSide = 8;
constexpr std::int64_t kListFeatures = 4;

at::IValue list_of(const std::vector<at::IValue>& items) {
  c10::impl::GenericList list(c10::AnyType::get());
  for (const at::IValue& item : items) list.push_back(item);
  return list;
}

// The mean activation of each image, which come as a list or as one tensor.
at::IValue features_of_images(Model& replica, const Arguments& share) {
  const at::IValue& images = share.positional[0];
  if (images.isTensor()) return replica.forward(images.toTensor()).mean({2, 3});
  std::vector<at::Tensor> features;
  for (const at::IValue& image : images.toListRef())
    features.push_back(replica.forward(image.toTensor().unsqueeze(0)).mean({2, 3}));
  return torch::cat(features);
}

// As a detector's loader gives them: images of different widths. The cure pads them to one tensor.
void images_in_a_list(Lab& lab) {
  const auto model =
      lab.model(conv2d({.in = kImageChannels, .out = kListFeatures, .kernel = 3}), lab.seed());
  DataParallel parallel(*model, lab.devices());
  std::vector<at::IValue> images;
  at::Tensor padded = torch::zeros({kListed, kImageChannels, kImageSide, kImageSide});
  for (std::int64_t i = 0; i < kListed; ++i) {
    const at::Tensor image = torch::randn({kImageChannels, kImageSide, kImageSide - i});
    padded[i].narrow(2, 0, kImageSide - i).copy_(image);
    images.emplace_back(to_vgpu(image, lab.device().index()));
  }
  const at::IValue input =
      lab.cured() ? at::IValue(to_vgpu(padded, lab.device().index())) : list_of(images);
  const at::IValue output = shown_call(lab, parallel, {{input}, {}}, features_of_images);
  if (output.isTensor()) run_backward(output.toTensor().sum());
}

std::int64_t length_at(const at::IValue& lengths, std::int64_t row) {
  if (lengths.isTensor()) return lengths.toTensor()[row].cpu().item<std::int64_t>();
  return lengths.toListRef()[static_cast<std::size_t>(row)].toInt();
}

// forward(x, lengths): the mean of each sequence over its own steps.
at::IValue means_of_sequences(Model& replica, const Arguments& share) {
  const at::Tensor sequences = share.positional[0].toTensor();
  std::vector<at::Tensor> means;
  for (std::int64_t row = 0; row < sequences.size(0); ++row) {
    const std::int64_t length = length_at(share.positional[1], row);
    means.push_back(sequences[row].narrow(0, 0, length).mean(0));
  }
  return replica.forward(torch::stack(means));
}

// The cure passes the lengths as a tensor, which is cut with the batch.
void lengths_in_a_list(Lab& lab) {
  const auto model = lab.model(linear({.in = kListFeatures, .out = kListFeatures}), lab.seed());
  DataParallel parallel(*model, lab.devices());
  const std::vector<std::int64_t> lengths{5, 4, 2, 1};
  const at::Tensor sequences =
      to_vgpu(torch::randn({kListed, lengths[0], kListFeatures}), lab.device().index());
  const at::Tensor cut = to_vgpu(torch::tensor(lengths, torch::kInt64), lab.device().index());
  const at::IValue copied = list_of(std::vector<at::IValue>(lengths.begin(), lengths.end()));
  const Arguments arguments{{sequences, lab.cured() ? at::IValue(cut) : copied}, {}};
  const at::Tensor reference = means_of_sequences(*model, arguments).toTensor();
  const at::IValue output = shown_call(lab, parallel, arguments, means_of_sequences);
  if (!output.isTensor()) return;
  compare_rows(lab, output.toTensor(), reference);
  run_backward(output.toTensor().sum());
}

}  // namespace

void list_input_split_wrongly(Lab& lab) {
  torch::manual_seed(lab.seed());
  lab.evidence()["batch"] = kListed;
  lab.form() == "images" ? images_in_a_list(lab) : lengths_in_a_list(lab);
}

}  // namespace bench::training
