#include "diagnose/model/library_parameters.hpp"

#include <array>
#include <unordered_map>

namespace bench::diagnose {
namespace {

using Names = std::array<std::string_view, 4>;

// Functions and classes, known by what they are imported from; and methods.
const std::unordered_map<std::string_view, Names>& functions() {
  static const std::unordered_map<std::string_view, Names> table{
      {"DistributedDataParallel", {"module", "device_ids", "output_device", "dim"}},
      {"DataParallel", {"module", "device_ids", "output_device", "dim"}},
      {"convert_sync_batchnorm", {"module", "process_group"}},
      {"DistributedSampler", {"dataset", "num_replicas", "rank", "shuffle"}},
      {"DataLoader", {"dataset", "batch_size", "shuffle", "sampler"}},
      {"random_split", {"dataset", "lengths", "generator"}},
      {"init_process_group", {"backend", "init_method", "timeout", "world_size"}},
      {"all_reduce", {"tensor", "op", "group", "async_op"}},
      {"broadcast", {"tensor", "src", "group", "async_op"}},
      {"broadcast_object_list", {"object_list", "src", "group", "device"}},
      {"reduce", {"tensor", "dst", "op", "group"}},
      {"all_gather", {"tensor_list", "tensor", "group", "async_op"}},
      {"all_gather_into_tensor", {"output_tensor", "input_tensor", "group", "async_op"}},
      {"all_gather_object", {"object_list", "obj", "group"}},
      {"gather", {"tensor", "gather_list", "dst", "group"}},
      {"gather_object", {"obj", "object_gather_list", "dst", "group"}},
      {"reduce_scatter", {"output", "input_list", "op", "group"}},
      {"scatter", {"tensor", "scatter_list", "src", "group"}},
      {"spawn", {"fn", "args", "nprocs", "join"}},
      {"set_device", {"device"}},
      {"manual_seed", {"seed"}},
      {"clip_grad_norm_", {"parameters", "max_norm", "norm_type"}},
      {"clip_grad_value_", {"parameters", "clip_value"}},
      {"save", {"obj", "f"}},
      {"load", {"f", "map_location"}},
      {"broadcast_parameters", {"params", "root_rank"}},
      {"broadcast_optimizer_state", {"optimizer", "root_rank"}},
      {"DistributedOptimizer", {"optimizer", "named_parameters"}},
      {"compile", {"model"}},
      {"grad", {"outputs", "inputs", "grad_outputs"}},
      {"checkpoint", {"function"}},
  };
  return table;
}

const std::unordered_map<std::string_view, Names>& methods() {
  static const std::unordered_map<std::string_view, Names> table{
      {"to", {"device", "dtype"}},
      {"cuda", {"device"}},
      {"set_epoch", {"epoch"}},
      {"load_state_dict", {"state_dict", "strict"}},
      {"clip_grad_norm_", {"parameters", "max_norm", "norm_type"}},
      {"clip_grad_value_", {"parameters", "clip_value"}},
      {"unscale_", {"optimizer"}},
      {"requires_grad_", {"requires_grad"}},
      {"backward", {"loss"}},
      {"manual_backward", {"loss"}},
      {"gather_for_metrics", {"input_data"}},
      {"unwrap_model", {"model"}},
      {"fit", {"model"}},
  };
  return table;
}

// fsdp and Horovod's kin are called by other words; an alias is known by what it stands for.
std::string_view plain_name(const Call& call) {
  switch (call.api) {
    case Api::ddp:
      return "DistributedDataParallel";
    case Api::data_parallel:
      return "DataParallel";
    case Api::distributed_sampler:
      return "DistributedSampler";
    case Api::data_loader:
      return "DataLoader";
    default:
      return call.name;
  }
}

}  // namespace

std::string_view library_parameter(const Module& module, const Call& call, std::size_t index) {
  const bool is_function = call.api != Api::none;
  if (!is_function && module[call.function].kind != Kind::attribute) return {};
  const auto& table = is_function ? functions() : methods();
  const auto found = table.find(is_function ? plain_name(call) : call.name);
  return found == table.end() || index >= found->second.size() ? std::string_view{}
                                                               : found->second[index];
}

}  // namespace bench::diagnose
