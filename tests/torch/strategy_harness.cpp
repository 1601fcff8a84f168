#include "tests/torch/strategy_harness.hpp"

#include "bench/core/strategy.hpp"

#include "training/devices/vgpu.hpp"
#include "training/strategies/rendezvous.hpp"

#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include <algorithm>
#include <exception>
#include <thread>

namespace bench::training {
namespace {

// The most virtual GPUs any test uses; they can be registered once only.
constexpr int kVirtualGpus = 8;

at::Device device_of(const Case& work, int index) {
  if (work.device == DeviceKind::cpu) return at::kCPU;
  register_vgpu({kVirtualGpus, Execute::numeric, 0});
  return vgpu_device(index);
}

TrainerOptions twin_options() {
  TrainerOptions options;
  options.scale = Scale::twin;
  options.keep_start = true;
  options.fresh_batches = true;
  return options;
}

Trained result_of(const Trainer& trainer) {
  Trained result;
  result.losses = trainer.fingerprint().losses;
  for (const auto& tensor : trainer.parameters()) {
    result.parameters.push_back(tensor.detach().to(at::kCPU, false, /*copy=*/true));
  }
  for (const auto& buffer : trainer.model().buffers()) {
    result.buffers.push_back(buffer.tensor.to(at::kCPU, false, /*copy=*/true));
  }
  return result;
}

Trained run_steps(Trainer& trainer, int steps) {
  IgnorePhases ignore;
  for (int step = 0; step < steps; ++step) trainer.step(ignore);
  return result_of(trainer);
}

}  // namespace

Case twin_case(const std::string& model, Strategy strategy, int gpus, std::int64_t batch,
               DeviceKind device) {
  Case work;
  work.model.name = model;
  work.strategy = strategy;
  work.gpus.clear();
  for (int gpu = 0; gpu < gpus; ++gpu) work.gpus.push_back(gpu);
  work.batch = batch;
  work.device = device;
  work.execute = Execute::numeric;
  return work;
}

void on_every_rank(const Case& work, const std::function<void(int, Placement)>& body) {
  const int world = work.process_count();
  const auto store = c10::make_intrusive<c10d::HashStore>();
  std::vector<std::exception_ptr> failures(static_cast<std::size_t>(world));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < world; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        Placement placement;
        placement.rank = rank;
        placement.world_size = world;
        placement.devices = {device_of(work, rank)};
        const RankContext ranks{rank, rank, world, world, "127.0.0.1", 0};
        placement.group = connect_group(store, ranks, placement.devices[0], "test");
        body(rank, placement);
      } catch (...) {
        failures[static_cast<std::size_t>(rank)] = std::current_exception();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  for (const auto& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

Trained train(const Case& work, int steps) {
  if (work.strategy != Strategy::distributed) {
    Placement placement;
    for (int i = 0; i < work.world_size(); ++i) placement.devices.push_back(device_of(work, i));
    Trainer trainer(work, placement, twin_options());
    return run_steps(trainer, steps);
  }
  std::vector<Trained> ranks(work.gpus.size());
  on_every_rank(work, [&](int rank, Placement placement) {
    Trainer trainer(work, std::move(placement), twin_options());
    ranks[static_cast<std::size_t>(rank)] = run_steps(trainer, steps);
  });
  Trained result = ranks[0];
  std::fill(result.losses.begin(), result.losses.end(), 0.0);
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const auto slice = rank_slice(work.batch, static_cast<int>(rank), work.world_size());
    const double share = static_cast<double>(slice.count) / static_cast<double>(work.batch);
    for (std::size_t i = 0; i < result.losses.size(); ++i) {
      result.losses[i] += share * ranks[rank].losses[i];
    }
  }
  return result;
}

Trained train_reference(const Case& work, int steps, const std::vector<std::int64_t>& chunks) {
  Job job;
  job.work = work;
  job.chunks = chunks;
  auto options = twin_options();
  options.reference = &job;
  Placement placement;
  placement.devices = {device_of(work, 0)};
  Trainer trainer(work, placement, options);
  return run_steps(trainer, steps);
}

Difference difference(const Trained& run, const Trained& reference) {
  Difference worst;
  for (std::size_t i = 0; i < reference.losses.size(); ++i) {
    const double relative = std::abs(run.losses.at(i) / reference.losses[i] - 1);
    worst.loss = std::max(worst.loss, relative);
  }
  for (std::size_t i = 0; i < reference.parameters.size(); ++i) {
    const auto& expected = reference.parameters[i];
    const auto apart = (run.parameters.at(i) - expected).norm() / expected.norm();
    worst.parameter = std::max(worst.parameter, apart.item<double>());
  }
  return worst;
}

}  // namespace bench::training
