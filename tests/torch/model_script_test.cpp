#include "bench/core/error.hpp"
#include "bench/core/temporary_directory.hpp"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/torch/python_oracle.hpp"

namespace bench::training {
namespace {

ModelSpec exported(const std::string& name, const nlohmann::json& entry) {
  ModelSpec spec;
  spec.name = name;
  spec.file = oracle_path(name + ".pt");
  spec.input_shape = entry["input"].get<std::vector<std::int64_t>>();
  const bool tokens = name == "token_classifier" || name == "tied_language_model";
  if (tokens) spec.input_dtype = "int64";
  return spec;
}

std::string load_error(const ModelSpec& spec) {
  try {
    make_model(spec, 1);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "accepted";
}

// The oracle's batch for an exported model.
std::pair<torch::Tensor, torch::Tensor> batch_of(const std::string& name, const Model& model) {
  const std::vector<std::int64_t> sizes = with_batch(4, model.input_shape);
  const torch::Tensor input = seeded_normal(sizes, 500);
  if (name == "autoencoder") return {input, seeded_normal(sizes, 501)};
  if (model.input_dtype == torch::kInt64) {
    const torch::Tensor ids = torch::arange(sizes[0] * sizes[1]).reshape(sizes) % 2;
    return {ids, name == "token_classifier" ? torch::arange(4) : ids};
  }
  return {input, torch::arange(4) * 3 % model.output_shape.back()};
}

TEST(ScriptModel, TrainingStepIsPythons) {
  const nlohmann::json oracle = read_oracle("scripts.json");
  int compared = 0;
  for (const auto& [name, entry] : oracle.items()) {
    if (!entry.contains("step")) continue;
    SCOPED_TRACE(name);
    const auto model = make_model(exported(name, entry), 1);
    EXPECT_EQ(described(model->parameters()), described(entry["parameters"]));
    EXPECT_EQ(described(model->buffers()), described(entry["buffers"]));
    EXPECT_EQ(model->module_count(), entry["modules"]);
    const auto [input, target] = batch_of(name, *model);
    expect_same_step(*model, entry["step"], input, target);
    ++compared;
  }
  EXPECT_GE(compared, 7);
}

TEST(ScriptModel, LossFollowsTheOutput) {
  const nlohmann::json oracle = read_oracle("scripts.json");
  const auto kind = [&](const char* name) {
    return make_model(exported(name, oracle[name]), 1)->loss_kind;
  };
  EXPECT_EQ(kind("autoencoder"), LossKind::mse);
  EXPECT_EQ(kind("two_heads"), LossKind::cross_entropy);
  const auto language =
      make_model(exported("tied_language_model", oracle["tied_language_model"]), 1);
  EXPECT_EQ(language->loss_kind, LossKind::cross_entropy);
  EXPECT_EQ(language->token_count, 13);
  EXPECT_EQ(language->parameters().size(), 1u);  // tied weights count once
}

TEST(ScriptModel, ShellsShareNothingAndKeepTies) {
  const nlohmann::json oracle = read_oracle("scripts.json");
  for (const char* name : {"tied_language_model", "resnet18"}) {
    const auto model = make_model(exported(name, oracle[name]), 1);
    const auto shell = model->shell();
    const auto own = model->parameters(), copied = shell->parameters();
    ASSERT_EQ(own.size(), copied.size());
    for (std::size_t i = 0; i < own.size(); ++i) {
      EXPECT_TRUE(torch::equal(own[i].tensor, copied[i].tensor)) << own[i].name;
      EXPECT_NE(own[i].tensor.data_ptr(), copied[i].tensor.data_ptr()) << own[i].name;
      EXPECT_TRUE(copied[i].tensor.requires_grad()) << own[i].name;
    }
    const auto [input, target] = batch_of(name, *model);
    EXPECT_TRUE(torch::equal(model->forward(input), shell->forward(input)));
    torch::NoGradGuard no_grad;
    copied[0].tensor.zero_();
    EXPECT_FALSE(torch::equal(model->forward(input), shell->forward(input)));
  }
}

TEST(ScriptModel, RebindingAHandleMovesTheModel) {
  const nlohmann::json oracle = read_oracle("scripts.json");
  const auto model = make_model(exported("two_heads", oracle["two_heads"]), 1);
  torch::NoGradGuard no_grad;
  for (const NamedTensor& p : model->parameters()) {
    const torch::Tensor zeros = torch::zeros_like(p.tensor);
    p.tensor.unsafeGetTensorImpl()->shallow_copy_from(zeros.getIntrusivePtr());
  }
  EXPECT_EQ(model->forward(torch::ones({2, 6})).abs().sum().item<float>(), 0);
}

TEST(ScriptModel, DropoutCanBeSwitchedOff) {
  ModelSpec spec;
  spec.file = oracle_path("regularised.pt");
  spec.input_shape = {6};
  const auto model = make_model(spec, 1);
  const torch::Tensor input = torch::ones({64, 6});
  EXPECT_FALSE(torch::equal(model->forward(input), model->forward(input)));
  model->disable_dropout();
  model->train(true);
  EXPECT_TRUE(torch::equal(model->forward(input), model->forward(input)));
  const auto shell = model->shell();
  EXPECT_TRUE(torch::equal(model->forward(input), shell->forward(input)));
}

TEST(ScriptModel, ProbingLeavesNoTrace) {
  const nlohmann::json oracle = read_oracle("scripts.json");
  const auto model = make_model(exported("resnet18", oracle["resnet18"]), 1);
  for (const NamedTensor& b : model->buffers()) {
    if (b.name != "bn1.num_batches_tracked") continue;
    EXPECT_EQ(b.tensor.item<std::int64_t>(), 0);
  }
}

TEST(ScriptModel, BadFilesAreExplained) {
  ModelSpec spec;
  spec.input_shape = {2};
  spec.file = oracle_path("nowhere.pt");
  EXPECT_NE(load_error(spec).find("no such file; expected a TorchScript file"), std::string::npos);
  spec.file = oracle_path("state_dict.pt");
  EXPECT_NE(load_error(spec).find("what torch.save wrote"), std::string::npos) << load_error(spec);
  spec.file = oracle_path("models.json");
  EXPECT_NE(load_error(spec).find("not a TorchScript file"), std::string::npos);
  spec.file = oracle_path("frozen.pt");
  EXPECT_NE(load_error(spec).find("no parameters to train"), std::string::npos);
}

TEST(ScriptModel, TruncatedFilesAreExplained) {
  const TemporaryDirectory folder;
  const std::string path = folder.file("truncated.pt");
  std::filesystem::copy_file(oracle_path("autoencoder.pt"), path,
                             std::filesystem::copy_options::overwrite_existing);
  std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
  ModelSpec spec;
  spec.file = path;
  spec.input_shape = {3, 8, 8};
  EXPECT_NE(load_error(spec).find("damaged archive"), std::string::npos) << load_error(spec);
}

TEST(ScriptModel, BadInputsAreExplained) {
  ModelSpec spec;
  spec.file = oracle_path("resnet18.pt");
  EXPECT_NE(load_error(spec).find("--input is missing"), std::string::npos);
  spec.input_shape = {1, 28, 28};
  const std::string error = load_error(spec);
  EXPECT_NE(error.find("does not accept 2 samples of --input 1x28x28 (float32)"), std::string::npos)
      << error;
  EXPECT_NE(error.find("expected input[2, 1, 28, 28] to have 3 channels"), std::string::npos)
      << error;
  EXPECT_EQ(error.find("Traceback"), std::string::npos) << error;
  spec.input_shape = {3, 64, 64};
  spec.classes = 2000;
  EXPECT_NE(load_error(spec).find("has scores for 1000"), std::string::npos);
  spec.classes = 0;
  spec.input_dtype = "float16";
  EXPECT_NE(load_error(spec).find("--input-dtype float16: expected float32 or int64"),
            std::string::npos);
  spec.file = oracle_path("no_batch.pt");
  spec.input_dtype = "float32";
  spec.input_shape = {6};
  EXPECT_NE(load_error(spec).find("the batch as its first dimension"), std::string::npos);
}

}  // namespace
}  // namespace bench::training
