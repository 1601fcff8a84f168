#include "training/strategies/distributed.hpp"

#include "bench/core/units.hpp"

#include "training/devices/recorder.hpp"
#include "training/devices/vgpu.hpp"

#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/distributed/c10d/comm.hpp>
#include <torch/csrc/distributed/c10d/debug.h>

#include <limits>
#include <numeric>

namespace bench::training {
namespace {

// Buffer size of the coalesced broadcasts of parameters and buffers (distributed.py).
constexpr std::size_t kBroadcastBufferBytes = 250 * kMiB;

std::unordered_map<std::size_t, std::string> trainable_names(const Model& model) {
  std::unordered_map<std::size_t, std::string> names;
  for (const auto& parameter : model.parameters()) {
    if (parameter.tensor.requires_grad()) names.emplace(names.size(), parameter.name);
  }
  return names;
}

std::shared_ptr<c10d::Reducer> make_reducer(const Model& model,
                                            const std::vector<at::Tensor>& parameters,
                                            const c10::intrusive_ptr<c10d::ProcessGroup>& group,
                                            const DdpOptions& options) {
  const std::vector<bool> dense(parameters.size(), false);
  auto buckets = std::get<0>(
      c10d::compute_bucket_assignment_by_size(parameters, initial_bucket_limits(options), dense));
  // Gradients arrive roughly in the reverse of definition order.
  std::reverse(buckets.begin(), buckets.end());
  return std::make_shared<c10d::Reducer>(
      parameters, std::move(buckets), group, dense, bucket_cap_bytes(options),
      options.find_unused_parameters, options.gradient_as_bucket_view, trainable_names(model),
      first_bucket_cap_bytes(options), /*skip_all_reduce_unused_params=*/false,
      /*use_python_reducer=*/false, /*bucket_bytes_cap_list=*/std::vector<std::int64_t>{});
}

}  // namespace

// The identity on the output that lets unused outputs reach the reducer as undefined gradients, and
// delays the first reduction of a static graph to the end of backward. It copies the output, as
// Python's _DDPSink does.
struct DistributedSink : torch::autograd::Function<DistributedSink> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& output,
                            Distributed* owner) {
    context->set_materialize_grads(false);
    context->saved_data["owner"] = reinterpret_cast<std::int64_t>(owner);
    return output.clone();
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    auto* owner = reinterpret_cast<Distributed*>(context->saved_data["owner"].toInt());
    if (owner->options_.static_graph && !owner->static_graph_delayed_) {
      torch::autograd::Engine::get_default_engine().queue_callback(
          [reducer = owner->reducer_] { reducer->delay_all_reduce(); });
      owner->static_graph_delayed_ = true;
    }
    return {gradients[0], at::Tensor()};
  }
};

std::int64_t bucket_cap_bytes(const DdpOptions& options) {
  if (!options.bucket_cap_mb) return c10d::kDefaultBucketBytesCap;
  return static_cast<std::int64_t>(*options.bucket_cap_mb * static_cast<double>(kMiB));
}

std::int64_t first_bucket_cap_bytes(const DdpOptions& options) {
  return options.bucket_cap_mb ? bucket_cap_bytes(options) : c10d::kDefaultFirstBucketBytes;
}

std::vector<std::size_t> initial_bucket_limits(const DdpOptions& options) {
  if (options.static_graph || !options.find_unused_parameters) {
    return {static_cast<std::size_t>(std::numeric_limits<std::int64_t>::max())};  // sys.maxsize
  }
  const auto cap = static_cast<std::size_t>(bucket_cap_bytes(options));
  if (options.bucket_cap_mb) return {cap};
  return {static_cast<std::size_t>(first_bucket_cap_bytes(options)), cap};
}

Distributed::Distributed(Model& model, c10::intrusive_ptr<c10d::ProcessGroup> group,
                         DdpOptions options)
    : model_(model), group_(std::move(group)), options_(options) {
  // Only from Info on does the reducer name the parameters that received no gradient.
  if (c10d::debug_level() == c10d::DebugLevel::Off) c10d::setDebugLevel(c10d::DebugLevel::Info);
  std::vector<at::Tensor> states;
  for (const auto& parameter : model.parameters()) {
    states.push_back(parameter.tensor.detach());
    if (parameter.tensor.requires_grad()) parameters_.push_back(parameter.tensor);
  }
  for (const auto& buffer : model.buffers()) buffers_.push_back(buffer.tensor.detach());
  if (options_.broadcast_buffers) states.insert(states.end(), buffers_.begin(), buffers_.end());

  // Under shape execution this process stands for all ranks, and the shapes it would receive have
  // no values to compare.
  const bool imagined_ranks = parameters_.at(0).is_privateuseone() && shape_execution();
  if (!imagined_ranks) {
    c10d::verify_params_across_processes(group_, parameters_, std::nullopt);
  }
  c10d::broadcast_coalesced(group_, states, kBroadcastBufferBytes, /*rank=*/0);
  {
    const CategoryScope category(simulator::MemoryCategory::buckets);
    reducer_ = make_reducer(model, parameters_, group_, options_);
  }
  logger_ = std::make_shared<c10d::Logger>(reducer_);
  reducer_->set_logger(logger_);
  const auto device = parameters_.at(0).device();
  const std::vector<int> device_ids =
      device.is_cpu() ? std::vector<int>{} : std::vector<int>{device.index()};
  logger_->set_construction_data_and_log("bench", device_ids, device.is_cpu() ? -1 : device.index(),
                                         options_.broadcast_buffers, /*has_sync_bn=*/false,
                                         options_.static_graph);
  if (options_.static_graph) {
    reducer_->set_static_graph();
    logger_->set_static_graph();
  }
}

void Distributed::broadcast_buffers() {
  if (!options_.broadcast_buffers || buffers_.empty() || !sync_buffers_) return;
  const torch::NoGradGuard no_grad;
  const CategoryScope category(simulator::MemoryCategory::buckets);
  c10d::broadcast_coalesced(group_, buffers_, kBroadcastBufferBytes, /*rank=*/0);
}

bool Distributed::needs_sink() const {
  return options_.static_graph ? !static_graph_delayed_ : options_.find_unused_parameters;
}

torch::Tensor Distributed::forward(const torch::Tensor& input, bool synchronise,
                                   PhaseSink& phases) {
  phases.enter(Phase::broadcast);
  // As in Python: without gradients the reducer is not prepared and its buckets are not rebuilt.
  const bool gradients = torch::GradMode::is_enabled();
  const bool reduces = synchronise && gradients;
  if (reduces) {
    // The reducer has timers for the CPU and CUDA only, and says so otherwise.
    if (!parameters_[0].is_privateuseone()) logger_->set_runtime_stats_and_log();
    reducer_->prepare_for_forward();
  }
  if (gradients) {
    const CategoryScope category(simulator::MemoryCategory::buckets);
    reducer_->rebuild_buckets();
  }
  broadcast_buffers();
  phases.enter(Phase::forward);
  auto output = model_.forward(input);
  sync_buffers_ = reduces;
  if (reduces) {
    const bool search = options_.find_unused_parameters && !options_.static_graph;
    reducer_->prepare_for_backward(search ? std::vector<at::Tensor>{output}
                                          : std::vector<at::Tensor>{});
  }
  return needs_sink() ? DistributedSink::apply(output, this) : output;
}

std::vector<std::int64_t> Distributed::bucket_bytes() const {
  std::vector<std::int64_t> bytes;
  for (const auto& bucket : reducer_->get_grad_buckets(/*return_zero_tensors=*/false)) {
    bytes.push_back(static_cast<std::int64_t>(bucket.getBuffer().nbytes()));
  }
  return bytes;
}

std::map<std::string, double> Distributed::counters() const {
  const auto bytes = bucket_bytes();
  std::map<std::string, double> result{
      {"buckets", static_cast<double>(bytes.size())},
      {"bucket_bytes", std::accumulate(bytes.begin(), bytes.end(), 0.0)}};
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    result["bucket_bytes_" + std::to_string(i)] = static_cast<double>(bytes[i]);
  }
  return result;
}

}  // namespace bench::training
