#include "profiling/chrome_trace.hpp"

#include "profiling/interval_set.hpp"
#include "profiling/trace_tracks.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>

namespace bench::profiling {
namespace {

using Json = nlohmann::ordered_json;

std::string dump(const Json& json) {
  return json.dump(-1, ' ', true, Json::error_handler_t::replace);
}

// Numbers as shortest text; a trace holds a hundred thousand of them.
template <class Number>
void append(std::string& text, Number value) {
  char digits[32];
  const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  text.append(digits, end);
}

// Chrome traces count microseconds; three decimals keep every nanosecond.
void append_microseconds(std::string& text, std::int64_t ns) {
  if (ns < 0) text += '-';
  const std::int64_t magnitude = ns < 0 ? -ns : ns;
  append(text, magnitude / 1000);
  const std::int64_t rest = magnitude % 1000;
  const char decimals[] = {'.', static_cast<char>('0' + rest / 100),
                           static_cast<char>('0' + rest / 10 % 10),
                           static_cast<char>('0' + rest % 10)};
  text.append(decimals, sizeof decimals);
}

// Where an event is drawn: a process of the trace (one rank of one step) and a track in it.
struct Place {
  int process = 0;
  int track = 0;
};

// Appends events to the array of one file. Text is built by hand: a trace has tens of thousands of
// events, and a JSON tree of them would cost more than the simulation that made them.
class EventWriter {
 public:
  void metadata(const char* name, Place place, const Json& args) {
    open(dump(name), "M", place);
    text_ += R"(,"args":)" + dump(args) + "}";
  }

  // The caller appends members of the event, then closes it.
  std::string& complete(const std::string& quoted_name, const char* category, Place place,
                        Span when) {
    open(quoted_name, "X", place);
    text_.append(R"(,"cat":")").append(category).append(R"(","ts":)");
    append_microseconds(text_, when.begin_ns);
    text_ += R"(,"dur":)";
    append_microseconds(text_, when.end_ns - when.begin_ns);
    return text_;
  }
  void close() { text_ += '}'; }

  void memory(int process, std::int32_t device, const MemorySample& sample) {
    open("\"GPU " + std::to_string(device) + " memory\"", "C", {process, 0});
    text_ += R"(,"ts":)";
    append_microseconds(text_, sample.time_ns);
    text_ += R"(,"args":{"bytes":)";
    append(text_, sample.bytes);
    text_ += "}}";
  }

  std::string take() { return std::move(text_); }

 private:
  void open(const std::string& quoted_name, const char* kind, Place place) {
    text_ += text_.empty() ? "\n{\"name\":" : ",\n{\"name\":";
    text_.append(quoted_name).append(R"(,"ph":")").append(kind).append(R"(","pid":)");
    append(text_, place.process);
    text_ += R"(,"tid":)";
    append(text_, place.track);
  }

  std::string text_;
};

void append_args(std::string& text, const Interval& interval) {
  text.append(R"(,"args":{"phase":")").append(simulator::phase_name(interval.phase)).append("\"");
  if (interval.bytes > 0) {
    text += R"(,"bytes":)";
    append(text, interval.bytes);
  }
  if (interval.flops > 0) {
    text += R"(,"flops":)";
    append(text, interval.flops);
  }
  text += '}';
}

std::int32_t devices_per_rank(const Timeline& timeline) {
  return std::max(1, timeline.devices / std::max(1, timeline.ranks));
}

// Ranks that get processes of their own.
std::int32_t traced_ranks(const Timeline& timeline, std::int32_t max_ranks) {
  if (!timeline.ranks_collapsed) return std::max(1, timeline.ranks);
  return timeline.ranks <= max_ranks ? timeline.ranks : 1;
}

// A collapsed rank as it would have been stored: rank 0 under another rank's numbers.
Timeline rank_view(const Timeline& timeline, std::int32_t rank) {
  Timeline view = timeline;
  const std::int32_t shift = rank * devices_per_rank(timeline);
  for (Interval& interval : view.intervals) {
    interval.rank = rank;
    if (interval.device >= 0) interval.device += shift;
  }
  for (MemorySample& sample : view.memory) sample.device += shift;
  for (PhaseSpan& phase : view.phases) phase.rank = rank;
  return view;
}

std::string process_name(const TracedStep& step, std::int32_t rank, bool stands_for_all) {
  const Timeline& timeline = step.timeline;
  std::string name = step.title + ", rank " + std::to_string(rank);
  if (stands_for_all) {
    name += " (stands for all " + std::to_string(timeline.ranks) + " ranks)";
  }
  return timeline.simulated ? name + " [SIMULATED]" : name;
}

void write_phases(const Timeline& timeline, std::int32_t rank, Place place, EventWriter& writer) {
  writer.metadata("thread_name", place, {{"name", "phases"}, {"track", "phases"}});
  writer.metadata("thread_sort_index", place, {{"sort_index", place.track}});
  for (const PhaseSpan& phase : timeline.phases) {
    if (phase.rank != rank || phase.end_ns <= phase.begin_ns) continue;
    writer.complete(dump(simulator::phase_name(phase.phase)), "phase", place,
                    {phase.begin_ns, phase.end_ns});
    writer.close();
  }
}

// One process of the trace: a rank with its tracks and the memory of its devices.
void write_rank(const Timeline& timeline, std::int32_t rank, int process,
                const std::vector<std::string>& quoted_names, EventWriter& writer) {
  writer.metadata("process_sort_index", {process, 0}, {{"sort_index", process}});
  if (timeline.simulated) {
    writer.metadata("process_labels", {process, 0}, {{"labels", "simulated"}});
  }
  Place place{process, 1};
  write_phases(timeline, rank, place, writer);
  for (const Track& track : make_tracks(timeline, rank)) {
    ++place.track;
    writer.metadata("thread_name", place,
                    {{"name", track.name}, {"device", track.device}, {"stream", track.stream}});
    writer.metadata("thread_sort_index", place, {{"sort_index", place.track}});
    for (const Interval* interval : track.intervals) {
      std::string& event =
          writer.complete(quoted_names[interval->name], interval_kind_name(interval->kind), place,
                          {interval->begin_ns, interval->end_ns});
      append_args(event, *interval);
      writer.close();
    }
  }
  const std::int32_t per_rank = devices_per_rank(timeline);
  for (const MemorySample& sample : timeline.memory) {
    if (sample.device / per_rank == rank) writer.memory(process, sample.device, sample);
  }
}

Json step_header(const TracedStep& step, int first_process, std::int32_t processes) {
  const Timeline& timeline = step.timeline;
  return {{"title", step.title},
          {"simulated", timeline.simulated},
          {"step_ns", timeline.step_ns},
          {"ranks", timeline.ranks},
          {"devices", timeline.devices},
          {"ranks_collapsed", processes < timeline.ranks},
          {"host_threads", timeline.host_threads},
          {"first_process", first_process},
          {"processes", processes}};
}

}  // namespace

std::string chrome_trace_json(const std::vector<TracedStep>& steps, std::int32_t max_ranks) {
  EventWriter writer;
  Json headers = Json::array();
  bool simulated = false;
  int process = 1;
  for (const TracedStep& step : steps) {
    const Timeline& timeline = step.timeline;
    const std::int32_t ranks = traced_ranks(timeline, max_ranks);
    simulated = simulated || timeline.simulated;
    headers.push_back(step_header(step, process, ranks));
    std::vector<std::string> quoted_names;
    for (const std::string& name : timeline.names) quoted_names.push_back(dump(name));
    for (std::int32_t rank = 0; rank < ranks; ++rank, ++process) {
      const std::string name = process_name(step, rank, ranks < timeline.ranks);
      writer.metadata("process_name", {process, 0}, {{"name", name}});
      const bool shifted = timeline.ranks_collapsed && rank > 0;
      write_rank(shifted ? rank_view(timeline, rank) : timeline, rank, process, quoted_names,
                 writer);
    }
  }
  const Json other{{"tool", "bench"}, {"simulated", simulated ? "true" : "false"}};
  return R"({"displayTimeUnit":"ms","otherData":)" + dump(other) + R"(,"benchSteps":)" +
         dump(headers) + R"(,"traceEvents":[)" + writer.take() + "\n]}\n";
}

}  // namespace bench::profiling
