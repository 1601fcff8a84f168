// Reads back the traces that chrome_trace.cpp writes, for reports rendered long after a run.
#include "bench/core/error.hpp"

#include "profiling/chrome_trace.hpp"

#include <nlohmann/json.hpp>

#include <cmath>
#include <cstring>
#include <map>
#include <unordered_map>
#include <utility>

namespace bench::profiling {
namespace {

using Json = nlohmann::json;

struct TrackId {
  std::int32_t device = 0;
  std::int32_t stream = 0;
};

std::int64_t nanoseconds(const Json& microseconds) {
  return std::llround(microseconds.get<double>() * 1000);
}

template <class E>
E by_name(const std::string& text, const char* (*name)(E), int count) {
  for (int i = 0; i < count; ++i) {
    if (text == name(static_cast<E>(i))) return static_cast<E>(i);
  }
  throw UsageError("unknown value '" + text + "'");
}

// Rebuilds one step from the events of its processes.
class StepReader {
 public:
  explicit StepReader(const Json& header) {
    header.at("title").get_to(step_.title);
    Timeline& timeline = step_.timeline;
    header.at("simulated").get_to(timeline.simulated);
    header.at("step_ns").get_to(timeline.step_ns);
    header.at("ranks").get_to(timeline.ranks);
    header.at("devices").get_to(timeline.devices);
    header.at("ranks_collapsed").get_to(timeline.ranks_collapsed);
    header.at("host_threads").get_to(timeline.host_threads);
    header.at("first_process").get_to(first_process_);
    header.at("processes").get_to(processes_);
  }

  bool holds(int process) const {
    return process >= first_process_ && process < first_process_ + processes_;
  }

  void add(const Json& event) {
    const auto& kind = event.at("ph").get_ref<const std::string&>();
    if (kind == "M") add_track(event);
    if (kind == "X") add_interval(event);
    if (kind == "C") add_memory(event);
  }

  TracedStep take() { return std::move(step_); }

 private:
  std::int32_t rank(const Json& event) const { return event.at("pid").get<int>() - first_process_; }
  static std::pair<int, int> place(const Json& event) {
    return {event.at("pid").get<int>(), event.at("tid").get<int>()};
  }

  void add_track(const Json& event) {
    const Json& args = event.at("args");
    if (event.at("name") != "thread_name" || !args.contains("device")) return;
    tracks_[place(event)] = {args.at("device").get<std::int32_t>(),
                             args.at("stream").get<std::int32_t>()};
  }

  void add_interval(const Json& event) {
    const std::int64_t begin = nanoseconds(event.at("ts"));
    const std::int64_t end = begin + nanoseconds(event.at("dur"));
    const auto& name = event.at("name").get_ref<const std::string&>();
    const auto& category = event.at("cat").get_ref<const std::string&>();
    if (category == "phase") {
      step_.timeline.phases.push_back({rank(event), phase(name), begin, end});
      return;
    }
    const TrackId track = tracks_.at(place(event));
    const Json& args = event.at("args");
    Interval interval;
    interval.rank = rank(event);
    interval.device = track.device;
    interval.stream = track.stream;
    interval.kind = by_name<IntervalKind>(category, interval_kind_name, kIntervalKindCount);
    interval.phase = phase(args.at("phase").get<std::string>());
    interval.name = name_index(name);
    interval.begin_ns = begin;
    interval.end_ns = end;
    interval.bytes = args.value("bytes", std::uint64_t{0});
    interval.flops = args.value("flops", 0.0);
    step_.timeline.intervals.push_back(interval);
  }

  void add_memory(const Json& event) {
    const auto& name = event.at("name").get_ref<const std::string&>();
    MemorySample sample;
    sample.device = std::stoi(name.substr(std::strlen("GPU ")));
    sample.time_ns = nanoseconds(event.at("ts"));
    sample.bytes = event.at("args").at("bytes").get<std::uint64_t>();
    step_.timeline.memory.push_back(sample);
  }

  static simulator::Phase phase(const std::string& name) {
    return by_name<simulator::Phase>(name, simulator::phase_name, simulator::kPhaseCount);
  }

  std::uint32_t name_index(const std::string& name) {
    if (name.empty()) return 0;
    auto& names = step_.timeline.names;
    const auto [found, is_new] =
        name_indices_.try_emplace(name, static_cast<std::uint32_t>(names.size()));
    if (is_new) names.push_back(name);
    return found->second;
  }

  TracedStep step_;
  int first_process_ = 0;
  int processes_ = 0;
  std::map<std::pair<int, int>, TrackId> tracks_;
  std::unordered_map<std::string, std::uint32_t> name_indices_;
};

}  // namespace

std::vector<TracedStep> parse_chrome_trace(const std::string& json, const std::string& origin) {
  try {
    const Json trace = Json::parse(json);
    std::vector<StepReader> readers;
    for (const Json& header : trace.at("benchSteps")) readers.emplace_back(header);
    for (const Json& event : trace.at("traceEvents")) {
      for (StepReader& reader : readers) {
        if (reader.holds(event.at("pid").get<int>())) reader.add(event);
      }
    }
    std::vector<TracedStep> steps;
    for (StepReader& reader : readers) steps.push_back(reader.take());
    return steps;
  } catch (const std::exception& e) {
    throw UsageError(origin + ": not a trace of bench: " + e.what());
  }
}

}  // namespace bench::profiling
