// What a calibration times, without timing it: every call is one recorded operation, on GPUs' and
// CPUs' lists alike, and a real CPU gives figures a machine can be made from.
#include "bench/calibrate/kernel_fit.hpp"
#include "bench/calibrate/machine_fit.hpp"

#include "training/calibrate/measurements.hpp"

#include <gtest/gtest.h>

#include <set>

namespace bench::training {
namespace {

TEST(CalibrateOperators, EveryCallIsOneRecordedOperation) {
  prepare_calibration();
  const auto calls = operator_calls(call_range(at::Device(at::kCUDA, 0), /*quick=*/false));
  std::set<std::string> names;
  for (const at::ScalarType type : {at::kFloat, at::kHalf, at::kBFloat16}) {
    for (const OperatorCall& call : calls) {
      const OperationSample sample = recorded_call(call, type);
      names.insert(sample.name);
      EXPECT_GT(sample.bytes(), 0) << call.label;
      EXPECT_FALSE(sample.shape.empty()) << call.label;
      if (is_matrix_product(sample.name)) EXPECT_GT(sample.flops, 0) << call.label;
    }
  }
  for (const char* name :
       {"aten::convolution", "aten::convolution_backward", "aten::addmm", "aten::mm",
        "aten::native_batch_norm", "aten::native_batch_norm_backward", "aten::relu_", "aten::add",
        "aten::threshold_backward", "aten::max_pool2d_with_indices_backward"}) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
}

TEST(CalibrateOperators, GroupsAreToldFromShapes) {
  prepare_calibration();
  int dense = 0, grouped = 0;
  for (const auto& call : operator_calls(call_range(at::Device(at::kCUDA, 0), true))) {
    const OperationSample sample = recorded_call(call, at::kFloat);
    if (!sample.name.starts_with("aten::convolution")) continue;
    (is_grouped(sample) ? grouped : dense) += 1;
  }
  EXPECT_EQ(dense, 2 * 2 * 8) << "layers forward and backward at two batches";
  EXPECT_EQ(grouped, 2 * 2 * 4);
}

}  // namespace
}  // namespace bench::training
