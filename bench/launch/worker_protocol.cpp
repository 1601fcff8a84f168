#include "bench/launch/worker_protocol.hpp"

#include "bench/core/case_json.hpp"
#include "bench/core/error.hpp"
#include "bench/core/file_text.hpp"

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <mutex>

namespace bench {
namespace {

using Json = nlohmann::json;

constexpr const char* kTypes[] = {"phase", "heartbeat", "report"};
// Ten signs of life a second are enough for limits of seconds and cost nothing.
constexpr std::int64_t kHeartbeatGapNs = 100'000'000;

std::int64_t monotonic_ns() {
  using namespace std::chrono;
  return duration_cast<nanoseconds>(steady_clock::now().time_since_epoch()).count();
}

std::optional<int> environment_int(const char* name) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == '\0') return std::nullopt;
  int value = 0;
  const char* end = text + std::strlen(text);
  auto [stop, error] = std::from_chars(text, end, value);
  if (error != std::errc{} || stop != end || value < 0) {
    throw UsageError(std::string(name) + "=" + text + ": expected a number of 0 or more");
  }
  return value;
}

// The first variable of the list that is set: each launcher has names of its own.
int first_set(std::initializer_list<const char*> names, int fallback) {
  for (const char* name : names) {
    if (auto value = environment_int(name)) return *value;
  }
  return fallback;
}

bool write_all(int fd, const char* data, std::size_t size) {
  while (size > 0) {
    const ssize_t written = ::write(fd, data, size);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    data += written;
    size -= static_cast<std::size_t>(written);
  }
  return true;
}

}  // namespace

int job_process_count(const Job& job) {
  const bool imagined_peers = job.kind == JobKind::record && job.work.execute == Execute::shape &&
                              job.work.device == DeviceKind::vgpu;
  if (job.kind == JobKind::reference || job.kind == JobKind::probe || imagined_peers) return 1;
  return job.work.process_count();
}

std::string encode_message(const WorkerMessage& message) {
  Json j{{"type", kTypes[static_cast<int>(message.type)]},
         {"job", message.job},
         {"at_ns", message.at_ns}};
  if (message.type == WorkerMessage::Type::phase) j["phase"] = message.phase;
  std::string line = j.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (message.type == WorkerMessage::Type::report) {
    // The report has its own encoder; it is put in as the last member.
    line.pop_back();
    line += ",\"report\":" + report_to_json(message.report) + "}";
  }
  return line;
}

WorkerMessage decode_message(const std::string& line) {
  try {
    const Json j = Json::parse(line);
    WorkerMessage message;
    const auto type = j.at("type").get<std::string>();
    if (type == "phase") {
      message.type = WorkerMessage::Type::phase;
      message.phase = j.at("phase").get<std::string>();
    } else if (type == "report") {
      message.type = WorkerMessage::Type::report;
      message.report = report_from_json(j.at("report").dump());
    } else if (type != "heartbeat") {
      throw UsageError("worker message of unknown type '" + type + "'");
    }
    message.job = j.value("job", 0);
    message.at_ns = j.value("at_ns", std::int64_t{0});
    return message;
  } catch (const Json::exception& e) {
    throw UsageError(std::string("malformed worker message: ") + e.what());
  }
}

std::vector<Job> read_job_file(const std::string& path) {
  const std::optional<std::string> text = file_text(path);
  if (!text) throw UsageError(path + ": cannot read the job file");
  std::vector<Job> jobs;
  try {
    const Json j = Json::parse(*text);
    if (!j.is_array()) {
      jobs.push_back(job_from_json(j.dump()));
    } else {
      for (const Json& one : j) jobs.push_back(job_from_json(one.dump()));
    }
  } catch (const Json::exception& e) {
    throw UsageError(path + ": malformed job file: " + e.what());
  } catch (const UsageError& e) {
    throw UsageError(path + ": " + e.what());
  }
  return jobs;
}

void write_job_file(const std::string& path, const std::vector<Job>& jobs) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << "[";
  for (std::size_t i = 0; i < jobs.size(); ++i) out << (i ? ",\n" : "") << job_to_json(jobs[i]);
  out << "]\n";
  out.flush();
  if (!out) throw MachineError(path + ": cannot write the job file");
}

RankContext rank_context_from_environment() {
  RankContext context;
  context.rank = first_set({"RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK"}, 0);
  context.local_rank =
      first_set({"LOCAL_RANK", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK"}, context.rank);
  context.world_size =
      first_set({"WORLD_SIZE", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}, 1);
  context.local_world_size =
      first_set({"LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "SLURM_NTASKS_PER_NODE"},
                context.world_size);
  if (const char* address = std::getenv("MASTER_ADDR")) context.master_addr = address;
  context.master_port = first_set({"MASTER_PORT"}, 0);
  if (context.world_size < 1 || context.rank >= context.world_size) {
    throw UsageError("RANK=" + std::to_string(context.rank) +
                     " is not below WORLD_SIZE=" + std::to_string(context.world_size));
  }
  return context;
}

void die_with_parent() {
  const auto parent = environment_int(kParentPidVariable);
  if (!parent) return;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // The parent may have died before the request was made; then nobody would send the signal.
  if (::getppid() != *parent) ::_exit(1);
}

struct WorkerChannel::State {
  std::mutex writing;
  std::atomic<int> job{0};
  std::atomic<std::int64_t> last_sent_ns{0};
};

std::shared_ptr<WorkerChannel::State> WorkerChannel::make_state() {
  return std::make_shared<State>();
}

std::unique_ptr<WorkerChannel> WorkerChannel::from_environment() {
  const auto fd = environment_int(kReportFdVariable);
  if (!fd) return std::make_unique<WorkerChannel>(STDOUT_FILENO);
  if (::fcntl(*fd, F_SETFD, FD_CLOEXEC) != 0) {
    throw UsageError(std::string(kReportFdVariable) + "=" + std::to_string(*fd) +
                     ": not an open descriptor");
  }
  // A parent that is gone must end a write with an error, not the worker with a signal.
  ::signal(SIGPIPE, SIG_IGN);
  return std::make_unique<WorkerChannel>(*fd);
}

void WorkerChannel::send(WorkerMessage message) {
  message.job = state_->job.load();
  message.at_ns = monotonic_ns();
  state_->last_sent_ns.store(message.at_ns);
  const std::string line = encode_message(message) + "\n";
  const std::lock_guard lock(state_->writing);
  // Nothing useful can be done here when the parent is gone: die_with_parent() ends the process.
  (void)write_all(fd_, line.data(), line.size());
}

void WorkerChannel::begin_job(int index) {
  state_->job.store(index);
  phase("start");
}

void WorkerChannel::phase(std::string_view name) {
  WorkerMessage message;
  message.type = WorkerMessage::Type::phase;
  message.phase = std::string(name);
  send(std::move(message));
}

void WorkerChannel::heartbeat() {
  if (monotonic_ns() - state_->last_sent_ns.load() < kHeartbeatGapNs) return;
  send(WorkerMessage{});
}

void WorkerChannel::report(const RankReport& report) {
  WorkerMessage message;
  message.type = WorkerMessage::Type::report;
  message.report = report;
  send(std::move(message));
}

std::string job_file_argument(int argc, char** argv) {
  for (int i = 1; i + 1 < argc; ++i) {
    if (std::string_view(argv[i]) == "--job") return argv[i + 1];
  }
  throw UsageError("--job FILE is missing: a worker is started by bench with a job file");
}

}  // namespace bench
