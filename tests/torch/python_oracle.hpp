// Reads what the Python oracles wrote for the tests of this folder, and fills tensors as they do.
#pragma once

#include "training/models/model.hpp"

#include <torch/torch.h>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace bench::training {

inline std::string oracle_path(const std::string& file) {
  return std::string(BENCH_ORACLE_DIR) + "/" + file;
}

inline nlohmann::json read_oracle(const std::string& file) {
  std::ifstream stream(oracle_path(file));
  if (!stream) throw std::runtime_error(oracle_path(file) + " is missing: run the test by ctest");
  return nlohmann::json::parse(stream);
}

// torch.randn with a generator of its own.
inline torch::Tensor seeded_normal(torch::IntArrayRef sizes, std::uint64_t seed) {
  return torch::randn(sizes, at::make_generator<at::CPUGeneratorImpl>(seed));
}

inline std::vector<std::int64_t> with_batch(std::int64_t batch, std::vector<std::int64_t> sample) {
  sample.insert(sample.begin(), batch);
  return sample;
}

// Names and shapes in the oracle's order, so that a failure prints the first difference.
inline std::vector<std::string> described(const std::vector<NamedTensor>& tensors) {
  std::vector<std::string> lines;
  for (const NamedTensor& item : tensors) {
    lines.push_back(item.name + " " + nlohmann::json(item.tensor.sizes().vec()).dump());
  }
  return lines;
}

inline std::vector<std::string> described(const nlohmann::json& tensors) {
  std::vector<std::string> lines;
  for (const auto& item : tensors) {
    lines.push_back(item[0].get<std::string>() + " " + item[1].dump());
  }
  return lines;
}

// One training step on the oracle's batch must give its outputs, loss, gradients and buffers.
// Gradients are compared by norm and by a random projection, relative to their norm.
inline void expect_same_step(Model& model, const nlohmann::json& step, const torch::Tensor& input,
                             const torch::Tensor& target) {
  constexpr double kRelative = 1e-5;  // float32 sums in another order
  model.train(true);
  const torch::Tensor output = model.forward(input);
  const torch::Tensor loss = model_loss(model.loss_kind, output, target);
  loss.backward();
  EXPECT_NEAR(loss.item<double>(), step["loss"].get<double>(), kRelative);
  const auto outputs = step["outputs"].get<std::vector<float>>();
  const torch::Tensor expected = torch::tensor(outputs).reshape(output.sizes());
  EXPECT_TRUE(torch::allclose(output, expected, kRelative, kRelative))
      << (output - expected).abs().max();
  const auto parameters = model.parameters();
  ASSERT_EQ(parameters.size(), step["gradients"].size());
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const torch::Tensor gradient = parameters[i].tensor.grad();
    const double norm = step["gradients"][i][0];
    const double projection =
        (gradient * seeded_normal(gradient.sizes(), 1000 + i)).sum().item<double>();
    const double allowed = kRelative * norm + 1e-6;
    EXPECT_NEAR(gradient.norm().item<double>(), norm, allowed) << parameters[i].name;
    EXPECT_NEAR(projection, step["gradients"][i][1].get<double>(), 10 * allowed)
        << parameters[i].name;
  }
  const auto buffers = model.buffers();
  ASSERT_EQ(buffers.size(), step["buffer_sums"].size());
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const double sum = step["buffer_sums"][i];
    EXPECT_NEAR(buffers[i].tensor.to(torch::kFloat64).sum().item<double>(), sum,
                kRelative * std::abs(sum) + 1e-4)
        << buffers[i].name;
  }
}

}  // namespace bench::training
