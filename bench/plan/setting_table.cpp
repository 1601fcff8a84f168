#include "bench/plan/setting_table.hpp"

#include "bench/core/nearest.hpp"
#include "bench/plan/setting_values.hpp"

#include <charconv>
#include <limits>

namespace bench {
namespace {

using Values = std::vector<Value>;

constexpr Setting kSettings[] = {
    {"", "description", "", "TEXT", ValueType::word, false, "what the scenario answers",
     "the question the scenario answers, shown by `bench list scenarios`",
     [](Settings& s, const Values& v) { s.description = std::get<std::string>(v[0]); }},

    {"sweep", "models", "--model", "NAME|FILE.pt,...", ValueType::word, true, "mlp,resnet18",
     "models of the zoo (`bench list models`) or TorchScript files",
     [](Settings& s, const Values& v) { s.models = words(v); }},
    {"sweep", "strategies", "--strategy", "S,...", ValueType::word, true, "single,dp,ddp",
     "single, data_parallel (dp), libtorch_data_parallel, distributed (ddp)",
     [](Settings& s, const Values& v) { s.strategies = strategies(v); }},
    {"sweep", "batches", "--batch", "N,...", ValueType::integer, true, "64,128",
     "samples of one optimizer step over all GPUs",
     [](Settings& s, const Values& v) {
       s.batches = positive(v);
       s.batches_per_gpu.clear();
       s.search_highest_per_gpu = 0;
     }},
    {"sweep", "batches_per_gpu", "--batch-per-gpu", "N,...", ValueType::integer, true, "16,32",
     "samples of one optimizer step on each GPU, instead of batches",
     [](Settings& s, const Values& v) {
       s.batches_per_gpu = positive(v);
       s.batches.clear();
       s.search_highest_per_gpu = 0;
     }},
    {"sweep", "gpu_counts", "--gpu-counts", "all|powers|N,...", ValueType::word, true, "1,2",
     "how many of the GPUs: all of them, powers (1, 2, 4, ... and all), or listed numbers",
     [](Settings& s, const Values& v) { set_gpu_counts(s, v); }},
    {"sweep", "accumulation", "--accumulation", "N,...", ValueType::integer, true, "1,4",
     "micro-batches that make up one optimizer step",
     [](Settings& s, const Values& v) { s.accumulations = small_positive(v); }},

    {"ddp", "bucket_cap_mb", "--bucket-cap-mb", "MB,...", ValueType::number, true, "1,25",
     "size of DDP's gradient buckets (default: first 1 MiB, then 25 MiB)",
     [](Settings& s, const Values& v) { s.bucket_caps_mb = positive_numbers(v); }},
    {"ddp", "find_unused_parameters", "--find-unused-parameters", "", ValueType::boolean, true,
     "true", "DDP looks for parameters without a gradient in every step",
     [](Settings& s, const Values& v) { s.find_unused_parameters = booleans(v); }},
    {"ddp", "static_graph", "--static-graph", "", ValueType::boolean, true, "true",
     "DDP may assume that every step uses the same graph",
     [](Settings& s, const Values& v) { s.static_graph = booleans(v); }},
    {"ddp", "gradient_as_bucket_view", "--gradient-as-bucket-view", "", ValueType::boolean, true,
     "true", "gradients live in DDP's buckets instead of beside them",
     [](Settings& s, const Values& v) { s.gradient_as_bucket_view = booleans(v); }},
    {"ddp", "broadcast_buffers", "--broadcast-buffers", "", ValueType::boolean, true, "false",
     "DDP sends rank 0's buffers (BatchNorm statistics) before every step; on by default",
     [](Settings& s, const Values& v) { s.broadcast_buffers = booleans(v); }},
    {"ddp", "no_sync", "--no-sync", "", ValueType::boolean, true, "false",
     "accumulation reduces gradients once per optimizer step, not per micro-batch; on by default",
     [](Settings& s, const Values& v) { s.no_sync = booleans(v); }},

    {"model", "input", "--input", "SHAPE", ValueType::word, false, "3x64x64",
     "shape of one sample; needed by TorchScript files",
     [](Settings& s, const Values& v) {
       s.input_shape = parse_shape(std::get<std::string>(v[0]));
     }},
    {"model", "input_dtype", "--input-dtype", "TYPE", ValueType::word, false, "int64",
     "float32, or int64 for token ids",
     [](Settings& s, const Values& v) {
       s.input_dtype = one_of(v, {"float32", "int64"});
     }},
    {"model", "classes", "--classes", "N", ValueType::integer, false, "10",
     "number of classes of the targets",
     [](Settings& s, const Values& v) { s.classes = positive(v)[0]; }},

    {"training", "steps", "--steps", "N", ValueType::integer, false, "20",
     "timed steps of each case (default: until the median settles; 1 where time is simulated)",
     [](Settings& s, const Values& v) { s.steps = small_positive(v)[0]; }},
    {"training", "warmup", "--warmup", "N", ValueType::integer, false, "2",
     "steps before the timed ones",
     [](Settings& s, const Values& v) { s.warmup = small_not_negative(v); }},
    {"training", "seed", "--seed", "N", ValueType::integer, false, "7",
     "start of parameters and batches; the same seed gives the same training",
     [](Settings& s, const Values& v) { s.seed = static_cast<std::uint64_t>(not_negative(v)); }},
    {"training", "execute", "--execute", "numeric|shape", ValueType::word, false, "numeric",
     "virtual GPUs: compute the values, or only shapes, bytes and times",
     [](Settings& s, const Values& v) {
       s.execute = *parse_execute(one_of(v, {"numeric", "shape"}));
       s.execute_given = true;
     }},
    {"training", "host", "--host", "cpp|python", ValueType::word, false, "python",
     "host of simulated time; python: DataParallel's threads share one interpreter lock",
     [](Settings& s, const Values& v) {
       s.host = *parse_host_profile(one_of(v, {"cpp", "python"}));
     }},
    {"training", "data", "--data", "synthetic|fashion_mnist", ValueType::word, false,
     "fashion_mnist", "seeded batches on the device, or a real data set with its loading",
     [](Settings& s, const Values& v) {
       s.data = *parse_data_kind(one_of(v, {"synthetic", "fashion_mnist"}));
     }},
    {"training", "data_workers", "--data-workers", "N", ValueType::integer, false, "4",
     "threads that load a real data set",
     [](Settings& s, const Values& v) { s.data_workers = small_positive(v)[0]; }},
    {"training", "optimizer", "--optimizer", "sgd|adam", ValueType::word, false, "adam",
     "sgd (with momentum) or adam",
     [](Settings& s, const Values& v) {
       s.optimizer.name = one_of(v, {"sgd", "adam"});
     }},
    {"training", "learning_rate", "--learning-rate", "X", ValueType::number, false, "0.1",
     "learning rate of the optimizer",
     [](Settings& s, const Values& v) { s.optimizer.learning_rate = positive_numbers(v)[0]; }},
    {"training", "momentum", "--momentum", "X", ValueType::number, false, "0.5",
     "momentum of sgd, from 0 to below 1",
     [](Settings& s, const Values& v) { s.optimizer.momentum = fraction(v); }},

    {"search", "lowest_per_gpu", "", "N", ValueType::integer, false, "1",
     "smallest batch of each GPU to try",
     [](Settings& s, const Values& v) { s.search_lowest_per_gpu = positive(v)[0]; }},
    {"search", "highest_per_gpu", "", "N", ValueType::integer, false, "4096",
     "largest batch of each GPU to try; its presence turns the sweep into a search",
     [](Settings& s, const Values& v) { s.search_highest_per_gpu = positive(v)[0]; }},
};

template <class Number>
Value number_from_text(const Setting& setting, std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) {
    throw BadValue("expected " + std::string(value_type_name(setting.type)) + ", found '" +
                   std::string(text) + "'");
  }
  return number;
}

Value value_from_text(const Setting& setting, std::string_view text) {
  if (text.empty()) throw BadValue("a value is empty");
  switch (setting.type) {
    case ValueType::word:
      return std::string(text);
    case ValueType::integer:
      return number_from_text<std::int64_t>(setting, text);
    case ValueType::number:
      return number_from_text<double>(setting, text);
    case ValueType::boolean:
      if (text == "true") return true;
      if (text == "false") return false;
      throw BadValue("expected true or false, found '" + std::string(text) + "'");
  }
  throw BadValue("unknown type");
}

}  // namespace

const char* value_type_name(ValueType type) {
  switch (type) {
    case ValueType::word:
      return "a text";
    case ValueType::integer:
      return "a whole number";
    case ValueType::number:
      return "a number";
    case ValueType::boolean:
      return "true or false";
  }
  return "?";
}

std::span<const Setting> setting_table() { return kSettings; }

const Setting* find_setting(std::string_view section, std::string_view key) {
  for (const Setting& row : kSettings) {
    if (row.section == section && row.key == key) return &row;
  }
  return nullptr;
}

const Setting* find_setting_by_flag(std::string_view flag) {
  for (const Setting& row : kSettings) {
    if (!row.flag.empty() && row.flag == flag) return &row;
  }
  return nullptr;
}

std::vector<Value> values_from_text(const Setting& setting, std::string_view text) {
  std::vector<Value> values;
  if (!setting.list) return {value_from_text(setting, text)};
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    values.push_back(value_from_text(setting, text.substr(begin, end - begin)));
    begin = end + 1;
  }
  return values;
}

}  // namespace bench
