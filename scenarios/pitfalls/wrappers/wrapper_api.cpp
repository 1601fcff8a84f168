#include "scenarios/pitfalls/wrappers/wrapper_api.hpp"

#include <algorithm>
#include <array>

namespace bench::pitfalls {

using diagnose::Field;
using diagnose::Kind;
using diagnose::NodeId;

namespace {

// Of torch.nn.Module, DataParallel and DistributedDataParallel (PyTorch 1.6 to 2.8), of what
// torch.compile and functorch make of them, and of the libraries that put their own on any module.
bool is_private_of_library(std::string_view name) {
  static constexpr auto kNames =
      std::to_array<std::string_view>({"_apply",
                                       "_assign_modules_buffers",
                                       "_buffers",
                                       "_call_impl",
                                       "_clear_grad_buffer",
                                       "_compiled_call_impl",
                                       "_convert_to_ddp_type",
                                       "_delay_all_reduce_all_params",
                                       "_default_broadcast_coalesced",
                                       "_distributed_broadcast_coalesced",
                                       "_find_common_rank",
                                       "_fire_reducer_autograd_hook",
                                       "_get_active_ddp_module",
                                       "_get_backward_hooks",
                                       "_get_backward_pre_hooks",
                                       "_get_data_parallel_params",
                                       "_get_ddp_logging_data",
                                       "_get_name",
                                       "_inside_ddp_forward",
                                       "_log_and_throw",
                                       "_maybe_warn_non_full_backward_hook",
                                       "_modules",
                                       "_module_copies",
                                       "_named_members",
                                       "_non_persistent_buffers_set",
                                       "_parameters",
                                       "_passing_sync_batchnorm_handle",
                                       "_post_forward",
                                       "_pre_forward",
                                       "_remove_autograd_hooks",
                                       "_replicate_for_data_parallel",
                                       "_run_ddp_forward",
                                       "_save_to_state_dict",
                                       "_load_from_state_dict",
                                       "_set_ddp_runtime_logging_sample_rate",
                                       "_set_static_graph",
                                       "_setup_in_backward_optimizers",
                                       "_should_disable_cpp_reducer",
                                       "_slow_forward",
                                       "_update_process_group",
                                       "_use_python_reducer",
                                       "_use_replicated_tensor_module",
                                       "_version",
                                       "_wrapped_call_impl"});
  for (const std::string_view of_library :
       {"_ddp", "_fsdp", "_hf_", "_is_", "_orig", "_register", "_sync", "_check", "_build", "_lazy",
        "_state_dict", "_load_state_dict"})
    if (name.starts_with(of_library)) return true;
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

}  // namespace

bool is_wrapper_api(std::string_view name) {
  static constexpr auto kNames =
      std::to_array<std::string_view>({"add_module",
                                       "apply",
                                       "bfloat16",
                                       "buffers",
                                       "children",
                                       "compile",
                                       "cpu",
                                       "cuda",
                                       "device",
                                       "device_ids",
                                       "dim",
                                       "double",
                                       "eval",
                                       "extra_repr",
                                       "find_unused_parameters",
                                       "float",
                                       "forward",
                                       "get_buffer",
                                       "get_extra_state",
                                       "get_parameter",
                                       "get_submodule",
                                       "half",
                                       "ipu",
                                       "join",
                                       "load_checkpoint",  // of DeepSpeed's engine
                                       "load_state_dict",
                                       "logger",
                                       "modules",
                                       "named_buffers",
                                       "named_children",
                                       "named_modules",
                                       "named_parameters",
                                       "no_sync",
                                       "module",
                                       "output_device",
                                       "parameters",
                                       "process_group",
                                       "reducer",
                                       "register_backward_hook",
                                       "register_buffer",
                                       "register_comm_hook",
                                       "register_forward_hook",
                                       "register_forward_pre_hook",
                                       "register_full_backward_hook",
                                       "register_module",
                                       "register_parameter",
                                       "register_state_dict_pre_hook",
                                       "require_backward_grad_sync",
                                       "require_forward_param_sync",
                                       "requires_grad_",
                                       "save_checkpoint",
                                       "scatter",
                                       "gather",
                                       "replicate",
                                       "parallel_apply",
                                       "set_extra_state",
                                       "share_memory",
                                       "state_dict",
                                       "static_graph",
                                       "to",
                                       "to_empty",
                                       "train",
                                       "training",
                                       "type",
                                       "xpu",
                                       "zero_grad",
                                       "src_device_obj",
                                       "is_multi_device_module",
                                       "broadcast_buffers"});
  return name.starts_with("_") || std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

bool is_private_method(Ref use) {
  const auto& tree = use.module->tree();
  const std::string_view name = use.child(Field::attribute).text();
  const NodeId call = tree[use.node].parent;
  return name.starts_with("_") && !name.starts_with("__") && !is_private_of_library(name) &&
         tree[call].kind == Kind::call && tree.child(call, Field::function) == use.node;
}

}  // namespace bench::pitfalls
