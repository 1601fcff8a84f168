#include "bench/predict/recording_store.hpp"

#include "bench/core/case_json.hpp"
#include "bench/core/error.hpp"
#include "bench/core/fnv_hash.hpp"
#include "bench/harness/simulated_runner.hpp"
#include "simulator/graph_io.hpp"

#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>

namespace bench {
namespace {

namespace fs = std::filesystem;

constexpr int kRecordedRanks = 2;
constexpr std::chrono::milliseconds kLongestRecording{600'000};
constexpr std::chrono::milliseconds kLongestSilence{120'000};

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

RecordingStore::RecordingStore(fs::path directory, std::vector<std::string> worker)
    : directory_(std::move(directory)),
      worker_(std::move(worker)),
      worker_identity_(worker_.empty() ? "" : identity_of(worker_.front())) {}

fs::path RecordingStore::path_of(const Case& recorded) const {
  std::string key = case_to_json(recorded) + worker_identity_;
  if (!recorded.model.file.empty()) key += identity_of(recorded.model.file);
  return directory_ /
         (recorded.model.name + "-" + strategy_name(recorded.strategy) + "-" +
          std::to_string(recorded.gpus.size()) + "x" +
          std::to_string(recorded.batch / recorded.world_size()) + "-" + fnv_hex(key) + ".graph");
}

void RecordingStore::prepare(const std::vector<Case>& cases) {
  std::vector<Case> missing;
  std::set<fs::path> seen;
  for (const Case& work : cases) {
    const Case recorded = recorded_case(work);
    const fs::path path = path_of(recorded);
    if (loaded_.contains(path) || !seen.insert(path).second || fs::exists(path)) continue;
    missing.push_back(recorded);
  }
  if (!missing.empty()) record(missing);
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

RecordingStore::Graph RecordingStore::graph(const Case& work) {
  const fs::path path = path_of(recorded_case(work));
  Graph& graph = loaded_[path];
  if (graph == nullptr) {
    graph = std::make_shared<simulator::OperationGraph>(simulator::read_graph(path.string()));
  }
  return graph;
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
