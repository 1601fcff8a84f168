#include "bench/core/run_json.hpp"

#include "bench/core/case_json.hpp"
#include "bench/core/error.hpp"
#include "bench/core/file_text.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>

namespace bench {
namespace {

using Json = nlohmann::ordered_json;

// Keys of Google Benchmark's own layout; everything else numeric beside them is a counter.
constexpr const char* kOwnObject = "bench";
constexpr const char* kContextKeys[] = {
    "date",        "command",  "scenario",     "title",         "machine", "machine_note",
    "device",      "execute",  "host_profile", "simulated",     "gpus",    "seed",
    "fingerprint", "versions", "notes",        "schema_version"};

template <class T>
void read(const Json& from, const char* key, T& into) {
  if (auto it = from.find(key); it != from.end() && !it->is_null()) into = it->template get<T>();
}

Json context_to_json(const RunContext& context) {
  Json j{{"date", context.date},
         {"schema_version", kResultsSchemaVersion},
         {"command", context.command},
         {"scenario", context.scenario},
         {"title", context.title},
         {"machine", context.machine},
         {"machine_note", context.machine_note},
         {"device", context.device},
         {"execute", context.execute},
         {"host_profile", context.host_profile},
         {"simulated", context.simulated},
         {"gpus", context.gpus},
         {"seed", context.seed},
         {"fingerprint", context.fingerprint},
         {"versions", context.versions},
         {"notes", context.notes}};
  for (const auto& [key, value] : context.extra) j[key] = value;
  return j;
}

RunContext context_from_json(const Json& j) {
  RunContext context;
  read(j, "date", context.date);
  read(j, "command", context.command);
  read(j, "scenario", context.scenario);
  read(j, "title", context.title);
  read(j, "machine", context.machine);
  read(j, "machine_note", context.machine_note);
  read(j, "device", context.device);
  read(j, "execute", context.execute);
  read(j, "host_profile", context.host_profile);
  read(j, "simulated", context.simulated);
  read(j, "gpus", context.gpus);
  read(j, "seed", context.seed);
  read(j, "fingerprint", context.fingerprint);
  read(j, "versions", context.versions);
  read(j, "notes", context.notes);
  for (const auto& [key, value] : j.items()) {
    const bool own =
        std::find(std::begin(kContextKeys), std::end(kContextKeys), key) != std::end(kContextKeys);
    if (!own && value.is_string()) context.extra[key] = value.get<std::string>();
  }
  return context;
}

Json memory_to_json(const std::vector<DeviceMemory>& memory) {
  Json all = Json::array();
  for (const DeviceMemory& m : memory) {
    all.push_back(
        {{"device", m.device}, {"peak_bytes", m.peak_bytes}, {"by_category", m.by_category}});
  }
  return all;
}

Json breakdown_to_json(const std::vector<DeviceBreakdown>& breakdown) {
  Json all = Json::array();
  for (const DeviceBreakdown& b : breakdown) {
    all.push_back({{"device", b.device},
                   {"compute_ms", b.compute_ms},
                   {"exposed_communication_ms", b.exposed_communication_ms},
                   {"exposed_copy_ms", b.exposed_copy_ms},
                   {"host_ms", b.host_ms},
                   {"idle_ms", b.idle_ms}});
  }
  return all;
}

Json samples_to_json(const SampleSummary& s) {
  return Json{{"count", s.count},   {"min_ms", s.min_ms}, {"p10_ms", s.p10_ms},
              {"p50_ms", s.p50_ms}, {"p90_ms", s.p90_ms}, {"max_ms", s.max_ms}};
}

Json own_object(const CaseResult& result) {
  return Json{{"status", case_status_name(result.status)},
              {"message", result.message},
              {"out_of_memory", result.out_of_memory},
              {"simulated", result.simulated},
              {"error_band", result.error_band},
              {"verification", result.verification},
              {"memory", memory_to_json(result.memory)},
              {"phase_ms", result.phase_ms},
              {"breakdown", breakdown_to_json(result.breakdown)},
              {"samples", samples_to_json(result.samples)},
              {"facts", result.facts},
              {"real_seconds", result.real_seconds},
              {"trace_file", result.trace_file},
              {"case", Json::parse(case_to_json(result.work))}};
}

// One entry of Google Benchmark's "benchmarks" array. A case without a timing carries
// skipped/skip_message (as the interface says) and error_occurred/error_message (as the library's
// own tools of version 1.7 expect).
Json case_entry(const CaseResult& result, std::size_t index) {
  Json j{{"name", result.name()},          {"family_index", index},
         {"per_family_instance_index", 0}, {"run_name", result.name()},
         {"run_type", "iteration"},        {"repetitions", 1},
         {"repetition_index", 0},          {"threads", 1}};
  if (result.status == CaseStatus::done) {
    j["iterations"] = result.samples.count;
    j["real_time"] = result.samples.p50_ms;
    // The library's tools require the key; a step of several processes has no CPU time of its own.
    j["cpu_time"] = result.samples.p50_ms;
    j["time_unit"] = "ms";
    for (const auto& [name, value] : result.metrics) {
      if (std::isfinite(value)) j[name] = value;
    }
    // The unit of a pitfall's cost, which differs from case to case.
    if (const auto unit = result.facts.find("cost_unit"); unit != result.facts.end())
      j["label"] = unit->second;
  } else {
    j["skipped"] = true;
    j["skip_message"] = result.message;
    j["error_occurred"] = true;
    j["error_message"] = result.message;
    if (result.status == CaseStatus::wrong) j["verified"] = 0;
  }
  j[kOwnObject] = own_object(result);
  return j;
}

CaseStatus status_from(const std::string& text) {
  for (auto status :
       {CaseStatus::done, CaseStatus::skipped, CaseStatus::wrong, CaseStatus::failed}) {
    if (text == case_status_name(status)) return status;
  }
  throw UsageError("status: unknown value '" + text + "'");
}

bool is_metric(const std::string& key, const Json& value) {
  static const char* const kLibraryKeys[] = {"family_index", "per_family_instance_index",
                                             "repetitions",  "repetition_index",
                                             "threads",      "iterations",
                                             "real_time",    "cpu_time"};
  return value.is_number() &&
         std::find(std::begin(kLibraryKeys), std::end(kLibraryKeys), key) == std::end(kLibraryKeys);
}

void read_arrays(const Json& own, CaseResult& result) {
  for (const Json& m : own.value("memory", Json::array())) {
    DeviceMemory memory;
    read(m, "device", memory.device);
    read(m, "peak_bytes", memory.peak_bytes);
    read(m, "by_category", memory.by_category);
    result.memory.push_back(memory);
  }
  for (const Json& b : own.value("breakdown", Json::array())) {
    DeviceBreakdown breakdown;
    read(b, "device", breakdown.device);
    read(b, "compute_ms", breakdown.compute_ms);
    read(b, "exposed_communication_ms", breakdown.exposed_communication_ms);
    read(b, "exposed_copy_ms", breakdown.exposed_copy_ms);
    read(b, "host_ms", breakdown.host_ms);
    read(b, "idle_ms", breakdown.idle_ms);
    result.breakdown.push_back(breakdown);
  }
}

CaseResult case_from_entry(const Json& j) {
  const Json& own = j.at(kOwnObject);
  CaseResult result;
  result.work = case_from_json(own.at("case").dump());
  result.status = status_from(own.at("status").get<std::string>());
  read(own, "message", result.message);
  read(own, "out_of_memory", result.out_of_memory);
  read(own, "simulated", result.simulated);
  read(own, "error_band", result.error_band);
  read(own, "verification", result.verification);
  read(own, "phase_ms", result.phase_ms);
  read(own, "facts", result.facts);
  read(own, "real_seconds", result.real_seconds);
  read(own, "trace_file", result.trace_file);
  read_arrays(own, result);
  const Json samples = own.value("samples", Json::object());
  read(samples, "count", result.samples.count);
  read(samples, "min_ms", result.samples.min_ms);
  read(samples, "p10_ms", result.samples.p10_ms);
  read(samples, "p50_ms", result.samples.p50_ms);
  read(samples, "p90_ms", result.samples.p90_ms);
  read(samples, "max_ms", result.samples.max_ms);
  if (result.status == CaseStatus::done) {
    for (const auto& [key, value] : j.items()) {
      if (is_metric(key, value)) result.metrics[key] = value.get<double>();
    }
  }
  return result;
}

}  // namespace

std::string run_to_json(const RunResult& run) {
  Json j{{"context", context_to_json(run.context)}, {"benchmarks", Json::array()}};
  for (std::size_t i = 0; i < run.cases.size(); ++i) {
    j["benchmarks"].push_back(case_entry(run.cases[i], i));
  }
  // Messages of workers may hold bytes that are not UTF-8; replace them rather than fail.
  return j.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

RunResult run_from_json(const std::string& text, const std::string& origin) {
  try {
    const Json j = Json::parse(text);
    RunResult run;
    const Json& context = j.at("context");
    const int version = context.value("schema_version", 0);
    if (version < 1 || version > kResultsSchemaVersion) {
      throw UsageError("expected context.schema_version 1 to " +
                       std::to_string(kResultsSchemaVersion) + ", found " +
                       std::to_string(version));
    }
    run.context = context_from_json(context);
    for (const Json& entry : j.at("benchmarks")) {
      // Aggregates of repetitions carry no case; they are derived figures.
      if (entry.contains(kOwnObject)) run.cases.push_back(case_from_entry(entry));
    }
    return run;
  } catch (const UsageError& e) {
    throw UsageError(origin + ": " + e.what());
  } catch (const Json::exception& e) {
    throw UsageError(origin + ": not a results.json of bench: " + e.what());
  }
}

RunResult load_run(const std::string& directory_or_file) {
  namespace fs = std::filesystem;
  fs::path path = directory_or_file;
  if (fs::is_directory(path)) path /= "results.json";
  const auto text = file_text(path);
  if (!text) {
    throw UsageError(path.string() +
                     ": cannot be read; expected a run's directory or its "
                     "results.json");
  }
  return run_from_json(*text, path.string());
}

}  // namespace bench
