#include "bench/launch/child_process.hpp"

#include "bench/core/error.hpp"
#include "bench/launch/worker_protocol.hpp"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>

extern char** environ;

namespace bench {
namespace {

// Where the worker finds the write end of its pipe; everything above is closed in the child.
constexpr int kChildMessageFd = 3;

[[noreturn]] void fail(const std::string& what, int error) {
  throw MachineError(what + ": " + std::strerror(error));
}

// glibc 2.36 declares pidfd_open without extern "C", so C++ programs cannot link to it.
int open_pidfd(pid_t pid) { return static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)); }

void check_spawn(int error, const char* what) {
  if (error != 0) fail(what, error);
}

// File actions and attributes of posix_spawn, destroyed whatever happens in between.
class SpawnPlan {
 public:
  SpawnPlan(const std::filesystem::path& log_dir, int write_end) {
    check_spawn(posix_spawn_file_actions_init(&actions_), "posix_spawn_file_actions_init");
    check_spawn(posix_spawnattr_init(&attributes_), "posix_spawnattr_init");
    open(STDIN_FILENO, "/dev/null", O_RDONLY);
    open(STDOUT_FILENO, log_dir / "stdout.log", O_WRONLY | O_CREAT | O_TRUNC);
    open(STDERR_FILENO, log_dir / "stderr.log", O_WRONLY | O_CREAT | O_TRUNC);
    // dup2 onto itself clears close-on-exec, so a write end that is 3 already works as well.
    check_spawn(posix_spawn_file_actions_adddup2(&actions_, write_end, kChildMessageFd), "dup2");
    check_spawn(posix_spawn_file_actions_addclosefrom_np(&actions_, kChildMessageFd + 1),
                "closefrom");
    sigset_t none;
    sigset_t all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setsigdefault(&attributes_, &all);
    posix_spawnattr_setpgroup(&attributes_, 0);
    posix_spawnattr_setflags(
        &attributes_, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;
  ~SpawnPlan() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }

  pid_t spawn(char* const* argv, char* const* env) {
    pid_t pid = -1;
    const int error = posix_spawnp(&pid, argv[0], &actions_, &attributes_, argv, env);
    if (error != 0) fail(std::string("cannot start ") + argv[0], error);
    return pid;
  }

 private:
  void open(int fd, const std::filesystem::path& path, int flags) {
    check_spawn(posix_spawn_file_actions_addopen(&actions_, fd, path.c_str(), flags, 0644),
                "posix_spawn_file_actions_addopen");
  }

  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

std::vector<std::string> merged_environment(const ProcessSpec& spec) {
  std::map<std::string, std::string> merged;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::size_t equals = text.find('=');
    if (equals != std::string::npos) merged[text.substr(0, equals)] = text.substr(equals + 1);
  }
  for (const auto& [name, value] : spec.environment) merged[name] = value;
  merged[kReportFdVariable] = std::to_string(kChildMessageFd);
  merged[kParentPidVariable] = std::to_string(::getpid());
  std::vector<std::string> result;
  for (const auto& [name, value] : merged) result.push_back(name + "=" + value);
  return result;
}

// posix_spawn reports a log that cannot be opened with the errno of open() alone; say which file.
void check_writable(const std::filesystem::path& directory) {
  if (::access(directory.c_str(), W_OK | X_OK) != 0) {
    fail(directory.string() + ": cannot write worker logs", errno);
  }
}

}  // namespace

FileDescriptor& FileDescriptor::operator=(FileDescriptor&& other) noexcept {
  if (this != &other) {
    reset();
    fd_ = std::exchange(other.fd_, -1);
  }
  return *this;
}

void FileDescriptor::reset() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

std::string ExitStatus::text() const {
  if (!signalled) return "exit code " + std::to_string(code);
  return "signal " + std::to_string(code) + " (" + ::strsignal(code) + ")";
}

ChildProcess::ChildProcess(const ProcessSpec& spec) {
  check_writable(spec.log_dir);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) fail("pipe", errno);
  messages_ = FileDescriptor(ends[0]);
  const FileDescriptor write_end(ends[1]);
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);

  std::vector<std::string> argv = spec.argv;
  std::vector<std::string> environment = merged_environment(spec);
  SpawnPlan plan(spec.log_dir, write_end.get());
  pid_.value = plan.spawn(pointers(argv).data(), pointers(environment).data());
  exit_fd_ = FileDescriptor(open_pidfd(pid_.value));
  if (exit_fd_.get() < 0) {
    const int error = errno;
    ::kill(-pid_.value, SIGKILL);
    ::waitpid(pid_.value, nullptr, 0);
    fail("pidfd_open", error);
  }
}

ChildProcess::~ChildProcess() {
  if (pid_.value < 0 || reaped_) return;
  ::kill(-pid_.value, SIGKILL);
  while (::waitpid(pid_.value, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void ChildProcess::signal_group(int signal) const {
  if (pid_.value > 0 && !reaped_) ::kill(-pid_.value, signal);
}

std::optional<ExitStatus> ChildProcess::try_reap() {
  siginfo_t info{};
  // Look without reaping: as long as the leader is a zombie its group id cannot be reused, so the
  // rest of the group can be killed safely.
  if (::waitid(P_PID, static_cast<id_t>(pid_.value), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
      info.si_pid == 0) {
    return std::nullopt;
  }
  ::kill(-pid_.value, SIGKILL);
  int status = 0;
  while (::waitpid(pid_.value, &status, 0) < 0 && errno == EINTR) {
  }
  reaped_ = true;
  if (WIFSIGNALED(status)) return ExitStatus{true, WTERMSIG(status)};
  return ExitStatus{false, WEXITSTATUS(status)};
}

}  // namespace bench
