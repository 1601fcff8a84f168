// A recurrent network's hidden state is (layers, batch, features): DataParallel cuts it along its
// layers, as it cuts everything along dimension 0.
#include "training/devices/vgpu.hpp"
#include "training/pitfalls/experiments.hpp"
#include "training/strategies/replicas.hpp"

namespace bench::training {
namespace {

constexpr std::int64_t kRnnLayers = 2;
constexpr std::int64_t kRnnBatch = 4;
constexpr std::int64_t kRnnWidth = 3;

torch::nn::RNN network_on(at::Device device) {
  torch::manual_seed(1);
  torch::nn::RNN network(
      torch::nn::RNNOptions(kRnnWidth, kRnnWidth).num_layers(kRnnLayers).batch_first(true));
  for (const at::Tensor& parameter : network->parameters())
    rebind(parameter, to_vgpu(parameter.detach(), device.index()));
  return network;
}

// A PackedSequence passed in: its rows and its batch sizes are cut independently of each other. The
// cure passes padded rows and lengths, and packs in the replica.
void packed_input(Lab& lab) {
  namespace rnn = torch::nn::utils::rnn;
  const int primary = lab.device().index();
  const at::Tensor padded = torch::ones({kRnnBatch, 4, kRnnWidth});
  const at::Tensor lengths = torch::tensor({4, 2, 2, 1}, torch::kInt64);
  const rnn::PackedSequence whole = rnn::pack_padded_sequence(padded, lengths, true);
  const at::Tensor& cut_sizes = lab.cured() ? lengths : whole.batch_sizes();
  const auto sizes = cut_sizes.chunk(static_cast<std::int64_t>(lab.devices().size()));
  const auto rows = scatter(to_vgpu(lab.cured() ? padded : whole.data(), primary), lab.devices());
  Json& evidence = lab.evidence();
  lab.attempt([&] {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const rnn::PackedSequence own = lab.cured()
                                          ? rnn::pack_padded_sequence(rows[i], sizes[i], true)
                                          : rnn::PackedSequence(rows[i], sizes[i]);
      evidence["packed_rows"].push_back(own.data().size(0));
      evidence["packed_rows_by_sizes"].push_back(own.batch_sizes().sum().item<std::int64_t>());
      auto network = network_on(lab.devices()[i]);
      const auto [output, last] = network->forward_with_packed_input(own);
      evidence["output_rows"].push_back(output.data().size(0));
    }
  });
}

void hidden_state(Lab& lab) {
  const int primary = lab.device().index();
  const at::Tensor input = to_vgpu(torch::ones({kRnnBatch, 5, kRnnWidth}), primary);
  // Broken: (layers, batch, width) as the layer wants it. Cured: batch first, turned inside.
  at::Tensor hidden = to_vgpu(torch::zeros({kRnnLayers, kRnnBatch, kRnnWidth}), primary);
  if (lab.cured()) hidden = hidden.transpose(0, 1).contiguous();
  const auto inputs = scatter(input, lab.devices());
  const auto hiddens = scatter(hidden, lab.devices());
  Json& evidence = lab.evidence();
  lab.attempt([&] {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      evidence["input_shards"].push_back(inputs[i].sizes().vec());
      evidence["hidden_shards"].push_back(hiddens[i].sizes().vec());
      auto network = network_on(lab.devices()[i]);
      const at::Tensor own = lab.cured() ? hiddens[i].transpose(0, 1).contiguous() : hiddens[i];
      const auto [output, last] = network->forward(inputs[i], own);
      evidence["output_rows"].push_back(output.size(0));
    }
  });
}

}  // namespace

void rnn_under_dataparallel(Lab& lab) {
  lab.form() == "packed-input" ? packed_input(lab) : hidden_state(lab);
}

}  // namespace bench::training
