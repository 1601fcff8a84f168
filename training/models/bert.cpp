// BERT of Devlin et al. (2018) as it is pre-trained on masked words: an encoder with learned
// positions, normalisation after each sublayer, and an output layer tied to the word embedding.
// Names follow the published checkpoints in PyTorch. Attention is spelt out as its pre-training
// code does it, since dropout falls on the probabilities; every position is scored.
#include "training/models/families.hpp"
#include "training/models/layers.hpp"

#include <cmath>

namespace bench::training {
namespace {

// The paper's and its code's.
constexpr double kBertDeviation = 0.02;
constexpr double kBertDropout = 0.1;
constexpr double kBertNormEpsilon = 1e-12;
constexpr std::int64_t kSegments = 2;

Network::Build bert_linear(std::int64_t in, std::int64_t out) {
  return linear({in, out, normal(kBertDeviation), constant(0)});
}

Network::Build bert_norm(std::int64_t width) { return layer_norm(width, kBertNormEpsilon); }

Network::Build bert_embeddings(const TransformerOptions& o) {
  return [o](Network& self) -> Network::Forward {
    const Part words =
        self.add("word_embeddings", embedding(o.vocabulary, o.width, kBertDeviation));
    const Part places =
        self.add("position_embeddings", embedding(o.positions, o.width, kBertDeviation));
    const Part segments =
        self.add("token_type_embeddings", embedding(kSegments, o.width, kBertDeviation));
    const Part norm = self.add("LayerNorm", bert_norm(o.width));
    const Part drop = self.add("dropout", dropout(kBertDropout));
    return [=](const Network&, const torch::Tensor& ids) {
      const torch::Tensor positions =
          torch::arange(ids.size(1), torch::dtype(torch::kInt64).device(ids.device()));
      const torch::Tensor sum = words->forward(ids) + segments->forward(torch::zeros_like(ids)) +
                                places->forward(positions);
      return drop->forward(norm->forward(sum));
    };
  };
}

Network::Build bert_heads(const TransformerOptions& o) {
  return [o](Network& self) -> Network::Forward {
    const Part query = self.add("query", bert_linear(o.width, o.width));
    const Part key = self.add("key", bert_linear(o.width, o.width));
    const Part value = self.add("value", bert_linear(o.width, o.width));
    const Part drop = self.add("dropout", dropout(kBertDropout));
    return [=](const Network&, const torch::Tensor& x) {
      const std::int64_t batch = x.size(0), length = x.size(1), size = o.width / o.heads;
      const auto per_head = [&](const Part& part) {
        return part->forward(x).view({batch, length, o.heads, size}).transpose(1, 2);
      };
      const torch::Tensor scores = torch::matmul(per_head(query), per_head(key).transpose(2, 3)) /
                                   std::sqrt(static_cast<double>(size));
      const torch::Tensor share = drop->forward(torch::softmax(scores, -1));
      const torch::Tensor y = torch::matmul(share, per_head(value));
      return y.transpose(1, 2).reshape({batch, length, o.width});
    };
  };
}

// Looked up for each pass, because cloning puts other networks in their place.
Part child(const Part& parent, const std::string& name) {
  return std::dynamic_pointer_cast<Network>(parent->named_children()[name]);
}

// The end of a sublayer. Its normalisation runs after the sum with what went into the sublayer.
Network::Build bert_output(std::int64_t in, std::int64_t width) {
  return [=](Network& self) -> Network::Forward {
    const Part dense = self.add("dense", bert_linear(in, width));
    self.add("LayerNorm", bert_norm(width));
    const Part drop = self.add("dropout", dropout(kBertDropout));
    return [=](const Network&, const torch::Tensor& x) { return drop->forward(dense->forward(x)); };
  };
}

torch::Tensor with_residual(const Part& output, const torch::Tensor& x, const torch::Tensor& in) {
  return child(output, "LayerNorm")->forward(output->forward(x) + in);
}

Network::Build bert_attention(const TransformerOptions& o) {
  return [o](Network& self) -> Network::Forward {
    const Part heads = self.add("self", bert_heads(o));
    const Part output = self.add("output", bert_output(o.width, o.width));
    return [=](const Network&, const torch::Tensor& x) {
      return with_residual(output, heads->forward(x), x);
    };
  };
}

// `activation` is what the checkpoints call the step between.
Network::Build bert_activated(std::int64_t in, std::int64_t out, const std::string& activation) {
  return [=](Network& self) -> Network::Forward {
    const Part dense = self.add("dense", bert_linear(in, out));
    const Part active = self.add(activation, gelu());
    return
        [=](const Network&, const torch::Tensor& x) { return active->forward(dense->forward(x)); };
  };
}

Network::Build bert_layer(const TransformerOptions& o) {
  return [o](Network& self) -> Network::Forward {
    const std::int64_t wide = 4 * o.width;
    const Part attention = self.add("attention", bert_attention(o));
    const Part widen =
        self.add("intermediate", bert_activated(o.width, wide, "intermediate_act_fn"));
    const Part output = self.add("output", bert_output(wide, o.width));
    return [=](const Network&, const torch::Tensor& x) {
      const torch::Tensor y = attention->forward(x);
      return with_residual(output, widen->forward(y), y);
    };
  };
}

Network::Build bert_encoder(const TransformerOptions& o) {
  return [o](Network& self) -> Network::Forward {
    Chain chain(self);
    chain.then("layer", sequential(std::vector<Network::Build>(static_cast<std::size_t>(o.layers),
                                                               bert_layer(o))));
    return chain.forward();
  };
}

Network::Build bert_body(const TransformerOptions& o) {
  return [o](Network& self) -> Network::Forward {
    Chain chain(self);
    chain.then("embeddings", bert_embeddings(o)).then("encoder", bert_encoder(o));
    return chain.forward();
  };
}

// Everything of the output layer but the product with the word embedding.
Network::Build bert_predictions(const TransformerOptions& o) {
  return [o](Network& self) -> Network::Forward {
    self.parameter("bias", {o.vocabulary}, constant(0));
    const Part transform = self.add("transform", [o](Network& inner) -> Network::Forward {
      const auto step = bert_activated(o.width, o.width, "transform_act_fn")(inner);
      const Part norm = inner.add("LayerNorm", bert_norm(o.width));
      return
          [=](const Network& net, const torch::Tensor& x) { return norm->forward(step(net, x)); };
    });
    return [=](const Network&, const torch::Tensor& x) { return transform->forward(x); };
  };
}

}  // namespace

Network::Build bert(const TransformerOptions& o) {
  return [o](Network& self) -> Network::Forward {
    const Part body = self.add("bert", bert_body(o));
    const Part head = self.add("cls", [o](Network& inner) -> Network::Forward {
      Chain chain(inner);
      chain.then("predictions", bert_predictions(o));
      return chain.forward();
    });
    return [=](const Network&, const torch::Tensor& ids) {
      const torch::Tensor y = head->forward(body->forward(ids));
      const Part words = child(child(body, "embeddings"), "word_embeddings");
      return torch::linear(y, words->named_parameters(/*recurse=*/false)["weight"],
                           child(head, "predictions")->named_parameters(false)["bias"]);
    };
  };
}

}  // namespace bench::training
