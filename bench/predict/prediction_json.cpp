#include "bench/predict/prediction_json.hpp"

#include <nlohmann/json.hpp>

namespace bench {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kSchemaVersion = 1;
constexpr double kNsPerMs = 1e6;

Json json_of(const MemoryFit& memory) {
  Json json{{"gpu", memory.gpu},
            {"peak_bytes", memory.peak_bytes},
            {"reserved_bytes", memory.reserved_bytes},
            {"context_bytes", memory.context_bytes},
            {"nccl_bytes", memory.nccl_bytes},
            {"capacity_bytes", memory.capacity_bytes},
            {"by_category", memory.by_category},
            {"fits", memory.fits}};
  if (!memory.node.empty()) json["node"] = memory.node;
  if (!memory.fits) json["first_failure"] = memory.first_failure;
  return json;
}

// Of the primary GPU: one array per category that is ever in use, beside the times.
Json json_of(const std::vector<profiling::MemorySample>& samples) {
  Json json{{"gpu", 0}, {"time_ms", Json::array()}, {"by_category", Json::object()}};
  for (const auto& sample : samples) {
    json["time_ms"].push_back(static_cast<double>(sample.time_ns) / kNsPerMs);
  }
  for (std::size_t i = 0; i < simulator::kMemoryCategoryCount; ++i) {
    Json bytes = Json::array();
    bool used = false;
    for (const auto& sample : samples) {
      bytes.push_back(sample.by_category[i]);
      used = used || sample.by_category[i] > 0;
    }
    const auto category = static_cast<simulator::MemoryCategory>(i);
    if (used) json["by_category"][simulator::memory_category_name(category)] = std::move(bytes);
  }
  return json;
}

Json question_json(const Question& question) {
  const Case& work = question.work;
  Json json{{"name", work.name()},
            {"model", work.model.name},
            {"machine", work.machine},
            {"strategy", strategy_name(work.strategy)},
            {"gpus", work.world_size()},
            {"batch", work.batch},
            {"accumulation", work.accumulation},
            {"precision", precision_name(question.precision)},
            {"hook", bucket_hook_name(question.hook)},
            {"host", host_profile_name(work.host)}};
  for (const auto& [key, value] : work.tags) json["options"][key] = value;
  return json;
}

Json json_of(const Prediction& p) {
  Json json = question_json(p.question);
  if (!p.has_figures()) {
    json["skipped"] = true;
    json["skip_message"] = *p.question.cannot;
    return json;
  }
  json["step_ms"] = p.step_ms;
  json["items_per_second"] = p.samples_per_second;
  json["single_ms"] = p.single_ms;
  json["scaling_efficiency"] = p.scaling_efficiency;
  json["compute_ms"] = p.compute_ms;
  json["exposed_communication_ms"] = p.exposed_communication_ms;
  json["exposed_copy_ms"] = p.exposed_copy_ms;
  json["host_ms"] = p.host_ms;
  json["idle_ms"] = p.idle_ms;
  json["comm_overlap"] = p.comm_overlap;
  json["bytes_communicated"] = p.bytes_communicated;
  json["error_band"] = {{"relative", p.error.relative},
                        {"provenance", provenance_name(p.error.provenance)},
                        {"reason", p.error.reason}};
  json["fits"] = p.fits();
  for (const SpeedClass& speeds : p.speed_classes) {
    json["speed_classes"].push_back(
        {{"speed", speeds.speed}, {"ranks", speeds.ranks}, {"waits_ms", speeds.waits_ms}});
    if (!speeds.node.empty()) json["speed_classes"].back()["node"] = speeds.node;
  }
  for (const MemoryFit& memory : p.memory) json["memory"].push_back(json_of(memory));
  json["memory_over_time"] = json_of(p.memory_over_time);
  if (p.max_batch_per_gpu) json["max_batch_per_gpu"] = *p.max_batch_per_gpu;
  return json;
}

}  // namespace

std::string predictions_json(const std::vector<Prediction>& predictions,
                             const std::vector<simulator::Machine>& machines,
                             const PredictRequest& request) {
  Json json{{"schema", kSchemaVersion}, {"simulated", true}};
  for (const simulator::Machine& machine : machines) {
    json["machines"].push_back(
        {{"name", machine.name},
         {"title", machine.title},
         {"gpus", machine.gpu_count()},
         {"inputs", inputs_of(machine, request.measured_single_ms.has_value())}});
  }
  json["predictions"] = Json::array();
  for (const Prediction& p : predictions) json["predictions"].push_back(json_of(p));
  return json.dump(2) + "\n";
}

}  // namespace bench
