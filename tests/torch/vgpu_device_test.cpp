// The vgpu device under numeric execution: values, accounting, errors.
#include "bench/core/error.hpp"

#include "training/devices/recorder.hpp"

#include <torch/torch.h>

#include <gtest/gtest.h>

#include "tests/torch/vgpu_networks.hpp"

namespace bench::training {
namespace {

void expect_same_training(Network (*make)()) {
  use_vgpu(Execute::numeric);
  const TrainingRun cpu = train(make(), -1, 5);
  const TrainingRun vgpu = train(make(), 1, 5);
  EXPECT_EQ(cpu.losses, vgpu.losses);
  ASSERT_EQ(cpu.parameters.size(), vgpu.parameters.size());
  for (std::size_t i = 0; i < cpu.parameters.size(); ++i) {
    EXPECT_TRUE(torch::equal(cpu.parameters[i], vgpu.parameters[i])) << "parameter " << i;
  }
  EXPECT_NE(cpu.losses.front(), cpu.losses.back());
}

TEST(VgpuDevice, TrainsAnMlpBitIdenticallyToTheCpu) { expect_same_training(&make_mlp); }
TEST(VgpuDevice, TrainsAConvNetBitIdenticallyToTheCpu) { expect_same_training(&make_conv_net); }

TEST(VgpuDevice, CountsBytesRoundedToAllocationUnits) {
  use_vgpu(Execute::numeric);
  const std::uint64_t before = current_bytes(2);
  reset_peak(2);
  {
    const torch::Tensor a = torch::empty({100}, torch::dtype(torch::kFloat).device(vgpu_device(2)));
    EXPECT_EQ(current_bytes(2), before + 512);  // 400 B
    const torch::Tensor b = torch::empty({129}, a.options());
    EXPECT_EQ(current_bytes(2), before + 1536);  // 516 B
    const torch::Tensor view = b.view({3, 43}).transpose(0, 1);
    EXPECT_EQ(current_bytes(2), before + 1536);
    const torch::Tensor sum = a.add(1);  // 400 B
    EXPECT_EQ(current_bytes(2), before + 2048);
  }
  EXPECT_EQ(current_bytes(2), before);
  EXPECT_EQ(peak_bytes(2), before + 2048);
  EXPECT_EQ(current_bytes(3), 0u);
}

TEST(VgpuDevice, PeakOfALinearStepIsTheSumOfItsTensors) {
  use_vgpu(Execute::numeric);
  const auto options = torch::dtype(torch::kFloat).device(vgpu_device(0));
  reset_peak(0);
  ASSERT_EQ(current_bytes(0), 0u);
  {
    const torch::Tensor x = torch::ones({64, 128}, options);                           // 32768 B
    const torch::Tensor w = torch::ones({256, 128}, options).set_requires_grad(true);  // 131072 B
    const torch::Tensor y = torch::mm(x, w.t());                                       // 65536 B
    const torch::Tensor loss = y.sum();                                                // 512 B
    EXPECT_EQ(current_bytes(0), 32768u + 131072 + 65536 + 512);
    loss.backward();  // ones (512), expanded without memory; mm of it makes [128,256], kept as a
                      // view
    EXPECT_EQ(current_bytes(0), 32768u + 131072 + 65536 + 512 + 131072);
    EXPECT_EQ(peak_bytes(0), 32768u + 131072 + 65536 + 512 + 512 + 131072);
  }
  EXPECT_EQ(current_bytes(0), 0u);
}

TEST(VgpuDevice, OutOfMemoryNamesDeviceRequestAndFreeBytes) {
  use_vgpu(Execute::numeric, 1 << 20);
  const auto options = torch::dtype(torch::kFloat).device(vgpu_device(1));
  {
    const torch::Tensor held = torch::empty({65536}, options);  // 256 KiB
    try {
      const torch::Tensor more = torch::empty({262144}, options);
      FAIL() << "1 MiB fits beside 256 KiB in 1 MiB";
    } catch (const c10::OutOfMemoryError& error) {
      const std::string text = error.what_without_backtrace();
      EXPECT_NE(text.find("out of memory. Tried to allocate 1024.00 KiB"), std::string::npos)
          << text;
      EXPECT_NE(text.find("GPU 1 has a total capacity of 1024.00 KiB of which 768.00 KiB is free"),
                std::string::npos)
          << text;
    }
    const torch::Tensor fits = torch::empty({196608}, options);  // the 768 KiB that are free
  }
  use_vgpu(Execute::numeric);
}

TEST(VgpuDevice, MixingDevicesRaisesPyTorchsError) {
  use_vgpu(Execute::numeric);
  const torch::Tensor cpu = torch::ones({2, 2});
  const torch::Tensor a = to_vgpu(cpu, 0);
  const torch::Tensor b = to_vgpu(cpu, 1);
  for (const auto& mix : {std::pair(a, b), std::pair(a, cpu)}) {
    try {
      torch::mm(mix.first, mix.second);
      ADD_FAILURE() << "no error";
    } catch (const c10::Error& error) {
      EXPECT_NE(std::string(error.what()).find("Expected all tensors to be on the same device"),
                std::string::npos)
          << error.what();
    }
  }
  EXPECT_THROW(torch::add(a, b), c10::Error);
  EXPECT_EQ(torch::add(a, torch::tensor(2.0F)).cpu().sum().item<float>(), 12.0F);
}

TEST(VgpuDevice, ResizesOutputsAndTensors) {
  use_vgpu(Execute::numeric);
  const torch::Tensor a = to_vgpu(torch::arange(6, torch::kFloat), 0);
  torch::Tensor out = torch::empty({0}, a.options());
  torch::add_out(out, a, a);
  EXPECT_TRUE(torch::equal(out.cpu(), torch::arange(6, torch::kFloat) * 2));
  EXPECT_EQ(current_bytes(0), 1024u);
  out.resize_({300});
  EXPECT_EQ(current_bytes(0), 512u + 1536u);
  EXPECT_TRUE(torch::equal(out.slice(0, 0, 6).cpu(), torch::arange(6, torch::kFloat) * 2));
}

TEST(VgpuDevice, OptionsDoNotChangeUnderLiveTensors) {
  use_vgpu(Execute::numeric);
  const torch::Tensor a = to_vgpu(torch::ones({1}), 0);
  EXPECT_THROW(use_vgpu(Execute::shape), UsageError);
}

TEST(VgpuDevice, BackwardOfFourDevicesRunsOnFourThreads) {
  use_vgpu(Execute::numeric);
  std::mutex mutex;
  std::set<std::thread::id> threads;
  std::vector<torch::Tensor> outputs;
  for (int device = 0; device < kTestDevices; ++device) {
    torch::Tensor x = to_vgpu(torch::ones({8}), device).set_requires_grad(true);
    torch::Tensor y = x * 2;
    y.register_hook([&](const torch::Tensor& grad) {
      std::scoped_lock lock(mutex);
      threads.insert(std::this_thread::get_id());
      return grad;
    });
    outputs.push_back(y.sum().to(vgpu_device(0)));
  }
  torch::stack(outputs).sum().backward();
  EXPECT_EQ(threads.size(), 4u);
}

}  // namespace
}  // namespace bench::training
