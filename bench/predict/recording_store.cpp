#include "bench/predict/recording_store.hpp"

#include "bench/core/case_json.hpp"
#include "bench/core/error.hpp"
#include "bench/core/fnv_hash.hpp"
#include "bench/core/strategy.hpp"
#include "bench/harness/simulated_runner.hpp"
#include "bench/predict/recorded_batch.hpp"
#include "simulator/graph_io.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>
#include <utility>

namespace bench {
namespace {

namespace fs = std::filesystem;

constexpr int kRecordedRanks = 2;
constexpr std::chrono::milliseconds kLongestRecording{600'000};
constexpr std::chrono::milliseconds kLongestSilence{120'000};
// A series costs three recordings, and whatever else is asked later costs none.
constexpr std::size_t kBatchesWorthASeries = simulator::BatchSeries::kSamples.size();

// Size and time of a file: a rebuilt worker or an exported model is told from the one before.
std::string identity_of(const fs::path& file) {
  std::error_code error;
  const auto size = fs::file_size(file, error);
  if (error) return "";
  const auto time = fs::last_write_time(file, error).time_since_epoch().count();
  return std::to_string(size) + "@" + std::to_string(time);
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// One case of each series that many of these belong to.
std::vector<Case> worth_a_series(const std::vector<Case>& missing) {
  std::map<std::string, std::vector<const Case*>> batches;
  for (const Case& recorded : missing) {
    if (samples_of(recorded).value_or(0) < simulator::BatchSeries::kLeastSamples) continue;
    batches[series_key(recorded)].push_back(&recorded);
  }
  std::vector<Case> found;
  for (const auto& [key, cases] : batches) {
    if (cases.size() >= kBatchesWorthASeries) found.push_back(*cases.front());
  }
  return found;
}

}  // namespace

Case recorded_case(const Case& work) {
  Case recorded = work;
  recorded.scenario = "record";
  recorded.tags.clear();
  recorded.machine.clear();
  recorded.device_memory_bytes = 0;
  recorded.device = DeviceKind::vgpu;
  recorded.execute = Execute::shape;
  recorded.host = HostProfile::cpp;
  recorded.reference_only = false;
  recorded.steps = 0;
  int devices = work.world_size();
  if (work.strategy == Strategy::distributed) {
    const int ranks = devices;
    devices = kRecordedRanks;
    recorded.batch = work.batch / ranks * kRecordedRanks;
  } else {
    recorded.ddp = {};
    recorded.no_sync = true;
  }
  recorded.gpus.clear();
  for (int i = 0; i < devices; ++i) recorded.gpus.push_back(i);
  return recorded;
}

RecordingStore::RecordingStore(fs::path directory, std::vector<std::string> worker, Batches batches)
    : directory_(std::move(directory)),
      worker_(std::move(worker)),
      worker_identity_(worker_.empty() ? "" : identity_of(worker_.front())),
      batches_(batches) {}

fs::path RecordingStore::path_of(const Case& recorded) const {
  std::string key = case_to_json(recorded) + worker_identity_;
  if (!recorded.model.file.empty()) key += identity_of(recorded.model.file);
  return directory_ /
         (recorded.model.name + "-" + strategy_name(recorded.strategy) + "-" +
          std::to_string(recorded.gpus.size()) + "x" +
          std::to_string(recorded.batch / recorded.world_size()) + "-" + fnv_hex(key) + ".graph");
}

bool RecordingStore::is_at_hand(const Case& recorded) {
  const fs::path path = path_of(recorded);
  if (loaded_.contains(path) || fs::exists(path)) return true;
  Graph graph = from_series(recorded);
  return graph != nullptr && loaded_.emplace(path, std::move(graph)).second;
}

std::vector<Case> RecordingStore::missing_of(const std::vector<Case>& cases) {
  std::vector<Case> missing;
  std::set<fs::path> seen;
  for (const Case& work : cases) {
    const Case recorded = recorded_case(work);
    if (seen.insert(path_of(recorded)).second && !is_at_hand(recorded)) missing.push_back(recorded);
  }
  return missing;
}

void RecordingStore::prepare(const std::vector<Case>& cases) {
  std::vector<Case> missing = missing_of(cases);
  const std::vector<Case> many = worth_a_series(missing);
  if (batches_ == Batches::edited && !many.empty()) {
    record_series(many);
    missing = missing_of(missing);
  }
  if (!missing.empty()) record(missing);
}

void RecordingStore::prepare_series(const Case& work) {
  const Case recorded = recorded_case(work);
  if (batches_ == Batches::edited && series_of(recorded) == nullptr) record_series({recorded});
}

// A model that takes some batches only has no series; what was asked for is recorded then.
void RecordingStore::record_series(const std::vector<Case>& missing) {
  std::vector<Case> needed;
  for (const Case& recorded : missing) {
    for (Case& point : series_cases(recorded)) {
      if (!fs::exists(path_of(point))) needed.push_back(std::move(point));
    }
  }
  try {
    if (!needed.empty()) record(needed);
  } catch (const MachineError&) {
    return;
  }
}

void RecordingStore::record(const std::vector<Case>& missing) {
  std::error_code error;
  fs::create_directories(directory_, error);
  if (error) throw MachineError(directory_.string() + ": " + error.message());
  ScratchDirectory logs(directory_ / ("recording-" + std::to_string(::getpid())));
  LaunchSettings settings;
  settings.program = worker_;
  settings.log_root = logs.path();
  settings.limits.job = kLongestRecording;
  settings.limits.silence = kLongestSilence;
  std::vector<Job> jobs;
  for (const Case& work : missing) {
    Job job;
    job.kind = JobKind::record;
    job.work = work;
    job.graph_file = path_of(work).string();
    jobs.push_back(std::move(job));
  }
  std::string failure;
  JobRunner(settings).run_batch(jobs, "record", [&](std::size_t i, const JobOutcome& outcome) {
    ++recorded_;
    if (outcome.status == RankStatus::ok || !failure.empty()) return;
    failure = strategy_name(missing[i].strategy) + std::string(" of ") + missing[i].model.name +
              " cannot be recorded: " + outcome.message;
  });
  if (failure.empty()) return;
  // A failure that sends its reader to a log leaves it there.
  if (failure.find(logs.path().string()) != std::string::npos) logs.keep();
  throw MachineError(failure);
}

RecordingStore::Graph RecordingStore::read(const Case& recorded) {
  const fs::path path = path_of(recorded);
  Graph& graph = loaded_[path];
  if (graph == nullptr) {
    graph = std::make_shared<simulator::OperationGraph>(simulator::read_graph(path.string()));
  }
  return graph;
}

const RecordingStore::Series* RecordingStore::series_of(const Case& recorded) {
  const std::string key = series_key(recorded);
  const auto found = series_.find(key);
  if (found != series_.end()) return &found->second;
  const std::vector<Case> cases = series_cases(recorded);
  const auto is_recorded = [&](const Case& point) { return fs::exists(path_of(point)); };
  if (!std::all_of(cases.begin(), cases.end(), is_recorded)) return nullptr;
  Series series;
  std::array<simulator::BatchPoint, simulator::BatchSeries::kSamples.size()> points;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    series.graphs.push_back(read(cases[i]));
    points[i] = {*samples_of(cases[i]), series.graphs[i].get()};
  }
  series.series = simulator::BatchSeries::make(points);
  return &series_.emplace(key, std::move(series)).first->second;
}

RecordingStore::Graph RecordingStore::from_series(const Case& recorded) {
  const auto samples = samples_of(recorded);
  if (batches_ == Batches::recorded || !samples) return nullptr;
  const Series* series = series_of(recorded);
  if (series == nullptr || !series->series) return nullptr;
  auto graph = series->series->at(*samples);
  if (!graph) return nullptr;
  return std::make_shared<simulator::OperationGraph>(std::move(*graph));
}

RecordingStore::Graph RecordingStore::graph(const Case& work) {
  const Case recorded = recorded_case(work);
  const fs::path path = path_of(recorded);
  const auto found = loaded_.find(path);
  if (found != loaded_.end()) return found->second;
  if (!fs::exists(path) && is_at_hand(recorded)) return loaded_.at(path);
  return read(recorded);
}

fs::path default_recordings() {
  const std::string given = environment("BENCH_RECORDINGS");
  if (!given.empty()) return given;
  const std::string cache = environment("XDG_CACHE_HOME");
  if (!cache.empty()) return fs::path(cache) / "bench" / "recordings";
  const std::string home = environment("HOME");
  if (!home.empty()) return fs::path(home) / ".cache" / "bench" / "recordings";
  return fs::path("results") / "recordings";
}

}  // namespace bench
