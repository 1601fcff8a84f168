// Arguments and outputs of a module under DataParallel: every case of scatter_oracle.py gives the
// replicas the shapes that Python's scatter_kwargs gives them, and gather joins what comes back.
#include "training/devices/vgpu.hpp"
#include "training/models/layers.hpp"
#include "training/models/zoo_model.hpp"
#include "training/strategies/data_parallel.hpp"

#include <gtest/gtest.h>

#include "tests/torch/python_oracle.hpp"

namespace bench::training {
namespace {

using nlohmann::json;

at::IValue list_of(std::vector<at::IValue> items) {
  c10::impl::GenericList list(c10::AnyType::get());
  for (at::IValue& item : items) list.push_back(std::move(item));
  return list;
}

at::IValue tuple_of(std::vector<at::IValue> items) {
  return c10::ivalue::Tuple::create(std::move(items));
}

at::Tensor zeros(std::vector<std::int64_t> sizes) { return torch::zeros(sizes); }

struct Case {
  const char* name;
  std::size_t devices;
  Arguments arguments;
};

std::vector<Case> cases() {
  const at::Tensor x = zeros({8, 3});
  return {
      {"one_tensor", 4, {{zeros({6, 3})}, {}}},
      {"one_row_beside_a_batch", 4, {{x, zeros({1, 3})}, {}}},
      {"half_a_batch_beside_a_whole", 8, {{x, zeros({4, 3})}, {}}},
      {"images_in_a_list", 2, {{list_of({zeros({3, 5, 5}), zeros({3, 7, 7})})}, {}}},
      {"lengths_in_a_list", 2, {{zeros({4, 3}), list_of({7, 5, 2, 1})}, {}}},
      {"batches_in_a_list", 2, {{list_of({zeros({4, 2}), zeros({4, 3})})}, {}}},
      {"a_tuple_in_a_list", 2, {{list_of({tuple_of({zeros({4, 2}), 3})})}, {}}},
      {"plain_values", 2, {{zeros({4, 3}), "abc", at::IValue(), list_of({})}, {}}},
      {"keywords", 4, {{x}, {{"mask", zeros({8, 2})}, {"scale", 2}}}},
      {"keywords_only", 4, {{}, {{"mask", zeros({8, 2})}}}},
      {"more_keyword_shards", 4, {{zeros({1, 3})}, {{"mask", zeros({8, 2})}}}},
      {"fewer_keyword_shards", 8, {{x}, {{"mask", zeros({4, 2})}}}},
      {"fewer_than_arguments", 4, {{x, x, x}, {{"mask", zeros({2, 2})}}}},
  };
}

// As scatter_oracle.py writes it.
json shapes(const at::IValue& value) {
  if (value.isTensor()) {
    std::string text;
    for (const std::int64_t size : value.toTensor().sizes())
      text += (text.empty() ? "" : "x") + std::to_string(size);
    return text;
  }
  if (value.isInt()) return value.toInt();
  if (value.isString()) return value.toStringRef();
  if (value.isNone()) return nullptr;
  json items = json::array();
  if (value.isTuple())
    for (const at::IValue& item : value.toTupleRef().elements()) items.push_back(shapes(item));
  else
    for (const at::IValue& item : value.toListRef()) items.push_back(shapes(item));
  return items;
}

json shapes(const std::vector<Arguments>& calls) {
  json all = json::array();
  for (const Arguments& call : calls) {
    json positional = json::array();
    for (const at::IValue& value : call.positional) positional.push_back(shapes(value));
    json keywords = json::object();
    for (const auto& [name, value] : call.keywords) keywords[name] = shapes(value);
    all.push_back({positional, keywords});
  }
  return all;
}

TEST(Arguments, AreScatteredAsPythonScattersThem) {
  const json expected = read_oracle("scatter.json");
  ASSERT_EQ(expected.size(), cases().size());
  for (const Case& one : cases()) {
    const std::vector<at::Device> devices(one.devices, at::kCPU);
    if (expected.at(one.name).is_null()) {
      EXPECT_THROW(scatter_arguments(one.arguments, devices), c10::Error) << one.name;
    } else {
      EXPECT_EQ(shapes(scatter_arguments(one.arguments, devices)), expected.at(one.name))
          << one.name;
    }
  }
}

TEST(Arguments, ThatDoNotPairUpAreRefusedInPythonsWords) {
  const std::vector<at::Device> devices(8, at::kCPU);
  try {
    scatter_arguments({{zeros({8, 3})}, {{"mask", zeros({4, 2})}}}, devices);
    FAIL() << "nothing was raised";
  } catch (const c10::Error& error) {
    EXPECT_STREQ(error.what_without_backtrace(),
                 "The number of modules 8 is not equal to the number of kwargs_tup 4");
  }
}

TEST(Arguments, NoneAtAllMakeOneCall) {
  EXPECT_EQ(scatter_arguments({}, std::vector<at::Device>(4, at::kCPU)).size(), 1U);
}

TEST(Gather, JoinsContainersElementByElement) {
  register_vgpu({8, Execute::numeric, 0});
  const auto on = [](int device, double value) {
    return to_vgpu(torch::full({2, 3}, value), device);
  };
  const at::IValue joined = gather_value({tuple_of({on(0, 1), list_of({on(0, 2)}), at::IValue()}),
                                          tuple_of({on(1, 3), list_of({on(1, 4)}), at::IValue()})},
                                         vgpu_device(0));
  const auto& items = joined.toTupleRef().elements();
  EXPECT_TRUE(torch::equal(items[0].toTensor().cpu(),
                           torch::tensor({1.F, 1.F, 3.F, 3.F}).unsqueeze(1).expand({4, 3})));
  EXPECT_EQ(items[1].toListRef()[0].toTensor().device(), vgpu_device(0));
  EXPECT_TRUE(items[2].isNone());
}

TEST(Gather, RefusesWhatPythonCannotGather) {
  const at::Device device(at::kCPU);
  EXPECT_THROW(gather_value({1.5, 2.5}, device), c10::TypeError);
  EXPECT_THROW(gather_value({list_of({at::IValue()}), list_of({})}, device), c10::ValueError);
}

TEST(DataParallelCall, GivesEachReplicaItsShareOfEveryArgument) {
  register_vgpu({8, Execute::numeric, 0});
  ZooModel model(linear({.in = 3, .out = 2}), 1);
  move_model(model, vgpu_device(0));
  DataParallel parallel(model, {vgpu_device(0), vgpu_device(1)});
  IgnorePhases ignore;
  const at::Tensor x = to_vgpu(torch::arange(12, torch::kFloat32).reshape({4, 3}), 0);
  const at::Tensor shift = to_vgpu(torch::ones({4, 3}), 0);
  const auto forward = [](Model& replica, const Arguments& share) -> at::IValue {
    return replica.forward(share.positional[0].toTensor() + share.keywords[0].second.toTensor());
  };
  const at::Tensor output = parallel.call({{x}, {{"shift", shift}}}, forward, ignore).toTensor();
  EXPECT_TRUE(torch::allclose(output.cpu(), model.forward(x + shift).cpu()));
  output.sum().backward();  // replicas give their memory back
}

}  // namespace
}  // namespace bench::training
