#include "training/strategies/trainer.hpp"

#include "bench/core/strategy.hpp"

#include "training/devices/recorder.hpp"
#include "training/devices/vgpu.hpp"
#include "training/strategies/chunked_reference.hpp"
#include "training/strategies/data_parallel.hpp"
#include "training/strategies/distributed.hpp"
#include "training/strategies/fingerprint.hpp"
#include "training/strategies/libtorch_data_parallel.hpp"
#include "training/strategies/optimizer.hpp"

namespace bench::training {
namespace {

using simulator::MemoryCategory;

// Plain training on the primary device.
class Single final : public Parallelism {
 public:
  explicit Single(Model& model) : model_(model) {}
  torch::Tensor forward(const torch::Tensor& input, bool, PhaseSink& phases) override {
    phases.enter(Phase::forward);
    return model_.forward(input);
  }

 private:
  Model& model_;
};

std::unique_ptr<Parallelism> make_parallelism(const Case& work, Model& model,
                                              const Placement& placement,
                                              const TrainerOptions& options) {
  if (options.reference != nullptr) {
    return std::make_unique<ChunkedReference>(model, options.reference->chunks,
                                              options.reference->buffers_from_first_chunk);
  }
  switch (work.strategy) {
    case Strategy::single:
      return std::make_unique<Single>(model);
    case Strategy::data_parallel:
      return std::make_unique<DataParallel>(model, placement.devices);
    case Strategy::libtorch_data_parallel:
      return std::make_unique<LibtorchDataParallel>(model, placement.devices);
    case Strategy::distributed:
      return std::make_unique<Distributed>(model, placement.group, work.ddp);
  }
  return nullptr;
}

void widen(Model& model) {
  for (const auto& list : {model.parameters(), model.buffers()}) {
    for (const auto& named : list) {
      if (named.tensor.is_floating_point()) {
        rebind(named.tensor, named.tensor.detach().to(at::kDouble));
      }
    }
  }
}

// Calls a gradient a gradient as soon as it has been accumulated, so that memory is labelled
// rightly where a step does not come to its end.
class LabelGradient final : public torch::autograd::FunctionPostHook {
 public:
  explicit LabelGradient(at::Tensor parameter) : parameter_(std::move(parameter)) {}
  torch::autograd::variable_list operator()(const torch::autograd::variable_list& outputs,
                                            const torch::autograd::variable_list&) override {
    tag(parameter_.grad(), MemoryCategory::gradients);
    return outputs;
  }

 private:
  at::Tensor parameter_;
};

// Copies a host tensor to the primary device.
at::Tensor place(const at::Tensor& tensor, at::Device device) {
  const CategoryScope category(MemoryCategory::inputs);
  if (device.is_privateuseone()) return to_vgpu(tensor, device.index());
  return tensor.to(device, /*non_blocking=*/tensor.is_pinned());
}

std::unique_ptr<BatchSource> make_batches(const Case& work, const Model& model,
                                          const Placement& placement,
                                          const TrainerOptions& options) {
  // The reference of a distributed run sees the slices of all ranks.
  const bool all_ranks = options.reference != nullptr && work.strategy == Strategy::distributed;
  auto batches = all_ranks ? batch_options(work, kAllRanks, work.world_size())
                           : batch_options(work, placement.rank, placement.world_size);
  const auto device = placement.devices[0];
  batches.values = !(device.is_privateuseone() && shape_execution());
  batches.fresh = options.fresh_batches;
  batches.pinned = device.is_cuda();
  const bool wide = options.double_precision;
  batches.place = [device, wide](const at::Tensor& tensor) {
    return place(wide && tensor.is_floating_point() ? tensor.to(at::kDouble) : tensor, device);
  };
  return make_batch_source(model, std::move(batches));
}

// Autograd hands the backward pass of a device to a thread of that device's. A virtual GPU's
// kernels run on the thread that calls them, so with one device the hand-over buys nothing and
// costs the caches of the core that ran the forward pass: the calling thread goes on, as it does
// for `cpu`. A recording keeps the thread, which a real GPU has.
class BackwardThread {
 public:
  explicit BackwardThread(const Placement& placement) {
    const bool stay = placement.devices.size() == 1 &&
                      placement.devices.front().is_privateuseone() && !recording();
    if (stay) state().set_multithreading_enabled(false);
  }
  ~BackwardThread() { state().set_multithreading_enabled(before_); }
  BackwardThread(const BackwardThread&) = delete;
  BackwardThread& operator=(const BackwardThread&) = delete;

 private:
  static c10::AutogradState& state() { return c10::AutogradState::get_tls_state(); }

  bool before_ = state().get_multithreading_enabled();
};

}  // namespace

double Trainer::mean(const StepLoss& losses) {
  double sum = 0;
  double samples = 0;
  for (const auto& micro : losses) {
    sum += micro.loss.item().toDouble() * static_cast<double>(micro.samples);
    samples += static_cast<double>(micro.samples);
  }
  return sum / samples;
}

Trainer::Trainer(const Case& work, Placement placement, const TrainerOptions& options)
    : work_(work), placement_(std::move(placement)), micro_batches_(micro_batches(work)) {
  torch::manual_seed(work.seed);
  model_ = make_model(work.model, work.seed, options.scale, options.init);
  model_->train(true);
  if (options.keep_start) model_->disable_dropout();
  if (options.double_precision) widen(*model_);
  move_model(*model_, primary());
  for (const auto& parameter : model_->parameters()) {
    if (parameter.tensor.requires_grad()) parameters_.push_back(parameter.tensor);
  }
  if (primary().is_privateuseone()) watch_gradients();
  parallelism_ = make_parallelism(work, *model_, placement_, options);
  optimizer_ = make_optimizer(work.optimizer, parameters_);
  batches_ = make_batches(work, *model_, placement_, options);
  if (!options.keep_start) return;
  for (const auto& parameter : parameters_) {
    start_.push_back(parameter.detach().to(at::kCPU, /*non_blocking=*/false, /*copy=*/true));
  }
}

void Trainer::step(PhaseSink& phases) {
  phases.enter(Phase::optimizer);
  // Optimizer::zero_grad detaches gradients in place first, which views of DDP's buckets refuse.
  for (auto& parameter : parameters_) parameter.mutable_grad().reset();
  last_losses_.clear();
  for (std::size_t i = 0; i < micro_batches_.size(); ++i) {
    last_losses_.push_back(micro_step(i, phases));
  }
  phases.enter(Phase::optimizer);
  {
    const CategoryScope category(MemoryCategory::optimizer_state);
    optimizer_->step();
  }
  phases.enter(Phase::other);
  label_memory();
  if (!start_.empty()) losses_.push_back(last_losses_);
}

Trainer::MicroLoss Trainer::micro_step(std::size_t index, PhaseSink& phases) {
  phases.enter(Phase::data);
  const auto batch = batches_->next();
  const bool last = index + 1 == micro_batches_.size();
  const auto output = parallelism_->forward(batch.input, last || !work_.no_sync, phases);
  phases.enter(Phase::loss);
  const auto loss = model_loss(model_->loss_kind, output, batch.target);
  // The step's gradient is that of the mean over the global batch. DistributedDataParallel averages
  // over ranks, so a rank with more samples than the others counts for more.
  const double share = static_cast<double>(batch.input.size(0)) * placement_.world_size /
                       static_cast<double>(work_.batch);
  const auto weighted = share == 1.0 ? loss : loss * share;
  phases.enter(Phase::backward);
  {
    const BackwardThread thread(placement_);
    run_backward(weighted);
  }
  return {loss.detach(), batch.input.size(0)};
}

void Trainer::watch_gradients() {
  for (const auto& parameter : parameters_) {
    const auto accumulator = torch::autograd::impl::grad_accumulator(parameter);
    accumulator->add_post_hook(std::make_unique<LabelGradient>(parameter));
    accumulators_.push_back(accumulator);
  }
}

void Trainer::label_memory() {
  if (!primary().is_privateuseone()) return;
  for (const auto& parameter : parameters_) {
    if (parameter.grad().defined()) tag(parameter.grad(), MemoryCategory::gradients);
  }
  for (const auto& state : optimizer_state(*optimizer_))
    tag(state, MemoryCategory::optimizer_state);
}

double Trainer::last_loss() const { return mean(last_losses_); }

Fingerprint Trainer::fingerprint() const {
  Fingerprint result;
  for (const auto& step : losses_) result.losses.push_back(mean(step));
  std::size_t index = 0;
  for (const auto& parameter : model_->parameters()) {
    if (!parameter.tensor.requires_grad()) continue;
    result.parameters.push_back(
        digest_parameter(parameter.name, index, start_.at(index), parameter.tensor));
    ++index;
  }
  return result;
}

std::map<std::string, double> Trainer::counters() const {
  auto result = parallelism_->counters();
  double count = 0;
  for (const auto& parameter : parameters_) count += static_cast<double>(parameter.numel());
  result["parameter_count"] = count;
  return result;
}

}  // namespace bench::training
