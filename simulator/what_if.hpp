// What-if edits that need no new recording: TF32 and automatic mixed precision, and communication
// hooks on DDP's buckets. Each takes the recorded float32 step and changes what the option changes.
#pragma once

#include "simulator/operation_graph.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace bench::simulator {

enum class Precision : std::uint8_t { float32, tf32, float16, bfloat16 };
const char* precision_name(Precision precision);
std::optional<Precision> parse_precision(const std::string& text);

enum class BucketHook : std::uint8_t { none, fp16_compress, bf16_compress };
const char* bucket_hook_name(BucketHook hook);
std::optional<BucketHook> parse_bucket_hook(const std::string& text);

// What torch.set_float32_matmul_precision("high") does, or torch.autocast.
// tf32: matrix products may use TF32 where the GPU has it, as convolutions do by default.
// 16 bits: convolutions and matrix products compute in 16 bits, what lies between them passes
// 16-bit tensors, and parameters, their gradients, the optimizer and the buckets stay float32.
// Every operation with a weight reads it once more to cast it.
OperationGraph with_precision(const OperationGraph& graph, Precision precision);

// DDP's compression hooks: a bucket is cast to 16 bits, reduced, and cast back.
OperationGraph with_bucket_hook(const OperationGraph& graph, BucketHook hook);

}  // namespace bench::simulator
