#include "bench/core/case_json.hpp"

#include "bench/core/error.hpp"

#include <nlohmann/json.hpp>

namespace bench {
namespace {

using Json = nlohmann::json;

template <class T>
void read(const Json& from, const char* key, T& into) {
  if (auto it = from.find(key); it != from.end() && !it->is_null()) into = it->template get<T>();
}

template <class E>
void read_name(const Json& from, const char* key, std::optional<E> (*parse)(const std::string&),
               E& into) {
  auto it = from.find(key);
  if (it == from.end()) return;
  auto value = parse(it->get<std::string>());
  if (!value)
    throw UsageError(std::string(key) + ": unknown value '" + it->get<std::string>() + "'");
  into = *value;
}

Json to_json(const Case& c) {
  Json j{{"scenario", c.scenario},
         {"model",
          {{"name", c.model.name},
           {"file", c.model.file},
           {"input_shape", c.model.input_shape},
           {"input_dtype", c.model.input_dtype},
           {"classes", c.model.classes}}},
         {"strategy", strategy_name(c.strategy)},
         {"gpus", c.gpus},
         {"batch", c.batch},
         {"accumulation", c.accumulation},
         {"no_sync", c.no_sync},
         {"ddp",
          {{"find_unused_parameters", c.ddp.find_unused_parameters},
           {"static_graph", c.ddp.static_graph},
           {"gradient_as_bucket_view", c.ddp.gradient_as_bucket_view},
           {"broadcast_buffers", c.ddp.broadcast_buffers}}},
         {"optimizer",
          {{"name", c.optimizer.name},
           {"learning_rate", c.optimizer.learning_rate},
           {"momentum", c.optimizer.momentum}}},
         {"data", data_kind_name(c.data)},
         {"data_workers", c.data_workers},
         {"device", device_kind_name(c.device)},
         {"execute", execute_name(c.execute)},
         {"host", host_profile_name(c.host)},
         {"machine", c.machine},
         {"device_memory_bytes", c.device_memory_bytes},
         {"steps", c.steps},
         {"warmup", c.warmup},
         {"seed", c.seed},
         {"tags", c.tags},
         {"reference_only", c.reference_only}};
  if (!c.pitfall.empty()) j["pitfall"] = c.pitfall;
  if (c.ddp.bucket_cap_mb) j["ddp"]["bucket_cap_mb"] = *c.ddp.bucket_cap_mb;
  return j;
}

Case to_case(const Json& j) {
  Case c;
  read(j, "scenario", c.scenario);
  const Json model = j.value("model", Json::object());
  read(model, "name", c.model.name);
  read(model, "file", c.model.file);
  read(model, "input_shape", c.model.input_shape);
  read(model, "input_dtype", c.model.input_dtype);
  read(model, "classes", c.model.classes);
  read_name(j, "strategy", parse_strategy, c.strategy);
  read(j, "gpus", c.gpus);
  read(j, "batch", c.batch);
  read(j, "accumulation", c.accumulation);
  read(j, "no_sync", c.no_sync);
  const Json ddp = j.value("ddp", Json::object());
  if (ddp.contains("bucket_cap_mb")) c.ddp.bucket_cap_mb = ddp["bucket_cap_mb"].get<double>();
  read(ddp, "find_unused_parameters", c.ddp.find_unused_parameters);
  read(ddp, "static_graph", c.ddp.static_graph);
  read(ddp, "gradient_as_bucket_view", c.ddp.gradient_as_bucket_view);
  read(ddp, "broadcast_buffers", c.ddp.broadcast_buffers);
  const Json optimizer = j.value("optimizer", Json::object());
  read(optimizer, "name", c.optimizer.name);
  read(optimizer, "learning_rate", c.optimizer.learning_rate);
  read(optimizer, "momentum", c.optimizer.momentum);
  read_name(j, "data", parse_data_kind, c.data);
  read(j, "data_workers", c.data_workers);
  read_name(j, "device", parse_device_kind, c.device);
  read_name(j, "execute", parse_execute, c.execute);
  read_name(j, "host", parse_host_profile, c.host);
  read(j, "machine", c.machine);
  read(j, "device_memory_bytes", c.device_memory_bytes);
  read(j, "steps", c.steps);
  read(j, "warmup", c.warmup);
  read(j, "seed", c.seed);
  read(j, "tags", c.tags);
  read(j, "reference_only", c.reference_only);
  read(j, "pitfall", c.pitfall);
  return c;
}

constexpr const char* kJobKinds[] = {"verify", "reference", "measure",  "record",
                                     "probe",  "pitfall",   "calibrate"};
constexpr const char* kStatuses[] = {"ok", "skip", "out_of_memory", "error"};

template <class E, std::size_t N>
E named(const Json& j, const char* key, const char* const (&names)[N]) {
  const auto text = j.at(key).get<std::string>();
  for (std::size_t i = 0; i < N; ++i) {
    if (text == names[i]) return static_cast<E>(i);
  }
  throw UsageError(std::string(key) + ": unknown value '" + text + "'");
}

Json to_json(const StepSample& s) {
  return Json{{"step", s.step},           {"rank", s.rank},         {"wall_ms", s.wall_ms},
              {"device_ms", s.device_ms}, {"phase_ms", s.phase_ms}, {"loss", s.loss}};
}

StepSample to_sample(const Json& j) {
  StepSample s;
  read(j, "step", s.step);
  read(j, "rank", s.rank);
  read(j, "wall_ms", s.wall_ms);
  read(j, "device_ms", s.device_ms);
  read(j, "phase_ms", s.phase_ms);
  read(j, "loss", s.loss);
  return s;
}

Json to_json(const ParameterDigest& p) {
  return Json{{"name", p.name},
              {"numel", p.numel},
              {"norm", p.norm},
              {"change_norm", p.change_norm},
              {"change_projection", p.change_projection}};
}

ParameterDigest to_digest(const Json& j) {
  ParameterDigest p;
  read(j, "name", p.name);
  read(j, "numel", p.numel);
  read(j, "norm", p.norm);
  read(j, "change_norm", p.change_norm);
  const auto& projections = j.at("change_projection");
  for (std::size_t i = 0; i < 4; ++i) p.change_projection[i] = projections.at(i).get<double>();
  return p;
}

// Parses and converts; any JSON trouble becomes one readable error.
template <class F>
auto guarded(const char* what, const std::string& text, F convert) {
  try {
    return convert(Json::parse(text));
  } catch (const Json::exception& e) {
    throw UsageError(std::string("malformed ") + what + ": " + e.what());
  }
}

}  // namespace

const char* job_kind_name(JobKind kind) { return kJobKinds[static_cast<int>(kind)]; }
const char* rank_status_name(RankStatus status) { return kStatuses[static_cast<int>(status)]; }

std::string case_to_json(const Case& work) { return to_json(work).dump(); }

Case case_from_json(const std::string& text) {
  return guarded("case", text, [](const Json& j) { return to_case(j); });
}

std::string job_to_json(const Job& job) {
  return Json{{"kind", job_kind_name(job.kind)},
              {"case", to_json(job.work)},
              {"steps", job.steps},
              {"chunks", job.chunks},
              {"buffers_from_first_chunk", job.buffers_from_first_chunk},
              {"twin", job.twin},
              {"graph_file", job.graph_file},
              {"min_seconds", job.min_seconds},
              {"max_seconds", job.max_seconds},
              {"form", job.form},
              {"cured", job.cured},
              {"evidence_file", job.evidence_file},
              {"samples_file", job.samples_file},
              {"quick", job.quick}}
      .dump();
}

Job job_from_json(const std::string& text) {
  return guarded("job", text, [](const Json& j) {
    Job job;
    job.kind = named<JobKind>(j, "kind", kJobKinds);
    job.work = to_case(j.at("case"));
    read(j, "steps", job.steps);
    read(j, "chunks", job.chunks);
    read(j, "buffers_from_first_chunk", job.buffers_from_first_chunk);
    read(j, "twin", job.twin);
    read(j, "graph_file", job.graph_file);
    read(j, "min_seconds", job.min_seconds);
    read(j, "max_seconds", job.max_seconds);
    read(j, "form", job.form);
    read(j, "cured", job.cured);
    read(j, "evidence_file", job.evidence_file);
    read(j, "samples_file", job.samples_file);
    read(j, "quick", job.quick);
    return job;
  });
}

std::string report_to_json(const RankReport& report) {
  Json j{{"rank", report.rank},         {"status", rank_status_name(report.status)},
         {"message", report.message},   {"losses", report.fingerprint.losses},
         {"counters", report.counters}, {"facts", report.facts},
         {"samples", Json::array()},    {"parameters", Json::array()},
         {"memory", Json::array()}};
  for (const auto& s : report.samples) j["samples"].push_back(to_json(s));
  for (const auto& p : report.fingerprint.parameters) j["parameters"].push_back(to_json(p));
  for (const auto& m : report.memory) {
    j["memory"].push_back(
        {{"device", m.device}, {"peak_bytes", m.peak_bytes}, {"by_category", m.by_category}});
  }
  // Exceptions' texts may hold bytes that are not UTF-8; replace them rather than fail.
  return j.dump(-1, ' ', false, Json::error_handler_t::replace);
}

RankReport report_from_json(const std::string& text) {
  return guarded("report", text, [](const Json& j) {
    RankReport r;
    read(j, "rank", r.rank);
    r.status = named<RankStatus>(j, "status", kStatuses);
    read(j, "message", r.message);
    read(j, "losses", r.fingerprint.losses);
    read(j, "counters", r.counters);
    read(j, "facts", r.facts);
    for (const auto& s : j.value("samples", Json::array())) r.samples.push_back(to_sample(s));
    for (const auto& p : j.value("parameters", Json::array())) {
      r.fingerprint.parameters.push_back(to_digest(p));
    }
    for (const auto& m : j.value("memory", Json::array())) {
      DeviceMemory memory;
      read(m, "device", memory.device);
      read(m, "peak_bytes", memory.peak_bytes);
      read(m, "by_category", memory.by_category);
      r.memory.push_back(memory);
    }
    return r;
  });
}

}  // namespace bench
