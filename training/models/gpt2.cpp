// GPT-2 of Radford et al. (2019): a decoder-only transformer with learned positions, normalisation
// before each sublayer and the output layer tied to the token embedding. Names follow the published
// checkpoint; linear layers are stored [out, in]. Dropout is 0, as pre-training runs set it today.
#include "training/models/families.hpp"
#include "training/models/layers.hpp"

#include <cmath>

namespace bench::training {
namespace {

// The published code's initialisation; projections onto the residual stream are scaled down by the
// number of additions to it.
constexpr double kGpt2Deviation = 0.02;

Network::Build gpt2_linear(std::int64_t in, std::int64_t out, double deviation) {
  return linear({in, out, normal(deviation), constant(0)});
}

double residual_deviation(const TransformerOptions& o) {
  return kGpt2Deviation / std::sqrt(2.0 * static_cast<double>(o.layers));
}

Network::Build gpt2_attention(const TransformerOptions& o) {
  return [o](Network& self) -> Network::Forward {
    const Part projections = self.add("c_attn", gpt2_linear(o.width, 3 * o.width, kGpt2Deviation));
    const Part output = self.add("c_proj", gpt2_linear(o.width, o.width, residual_deviation(o)));
    return [=](const Network&, const torch::Tensor& x) {
      const std::int64_t batch = x.size(0), length = x.size(1);
      const auto per_head = [&](const torch::Tensor& t) {
        return t.view({batch, length, o.heads, o.width / o.heads}).transpose(1, 2);
      };
      const std::vector<torch::Tensor> qkv = projections->forward(x).split(o.width, 2);
      const torch::Tensor y = torch::scaled_dot_product_attention(
          per_head(qkv[0]), per_head(qkv[1]), per_head(qkv[2]), /*attn_mask=*/{},
          /*dropout_p=*/0.0, /*is_causal=*/true);
      return output->forward(y.transpose(1, 2).reshape({batch, length, o.width}));
    };
  };
}

Network::Build gpt2_mlp(const TransformerOptions& o) {
  return [o](Network& self) -> Network::Forward {
    const Part widen = self.add("c_fc", gpt2_linear(o.width, 4 * o.width, kGpt2Deviation));
    const Part output =
        self.add("c_proj", gpt2_linear(4 * o.width, o.width, residual_deviation(o)));
    return [=](const Network&, const torch::Tensor& x) {
      return output->forward(torch::gelu(widen->forward(x), "tanh"));
    };
  };
}

Network::Build gpt2_block(const TransformerOptions& o) {
  return [o](Network& self) -> Network::Forward {
    const Part before_attention = self.add("ln_1", layer_norm(o.width));
    const Part attention = self.add("attn", gpt2_attention(o));
    const Part before_mlp = self.add("ln_2", layer_norm(o.width));
    const Part mlp = self.add("mlp", gpt2_mlp(o));
    return [=](const Network&, const torch::Tensor& x) {
      const torch::Tensor y = x + attention->forward(before_attention->forward(x));
      return y + mlp->forward(before_mlp->forward(y));
    };
  };
}

Network::Build gpt2_blocks(const TransformerOptions& o) {
  return sequential(std::vector<Network::Build>(static_cast<std::size_t>(o.layers), gpt2_block(o)));
}

}  // namespace

Network::Build gpt2(const TransformerOptions& o) {
  return [o](Network& self) -> Network::Forward {
    const Part tokens = self.add("wte", embedding(o.vocabulary, o.width, kGpt2Deviation));
    const Part places = self.add("wpe", embedding(o.positions, o.width, kGpt2Deviation));
    const Part blocks = self.add("h", gpt2_blocks(o));
    const Part last_norm = self.add("ln_f", layer_norm(o.width));
    return [=](const Network&, const torch::Tensor& ids) {
      const torch::Tensor positions =
          torch::arange(ids.size(1), torch::dtype(torch::kInt64).device(ids.device()));
      const torch::Tensor x = tokens->forward(ids) + places->forward(positions);
      const torch::Tensor y = last_norm->forward(blocks->forward(x));
      return torch::linear(y, tokens->named_parameters()["weight"]);
    };
  };
}

}  // namespace bench::training
