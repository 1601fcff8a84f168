// One started worker process: its own process group (so that Ctrl-C reaches the parent only and one
// signal ends a worker with all it started), output in files, one pipe for messages. The object
// owns the process: whatever happens, its destructor leaves neither a process nor a zombie behind.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace bench {

// A file descriptor that is closed with its owner.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept;
  ~FileDescriptor() { reset(); }

  int get() const { return fd_; }
  void reset();

 private:
  int fd_ = -1;
};

struct ProcessSpec {
  std::vector<std::string> argv;  // argv[0] is a path or a name on PATH
  std::vector<std::pair<std::string, std::string>> environment;  // added to the parent's own
  std::filesystem::path log_dir;  // stdout.log and stderr.log; must exist
};

// How a process ended: by itself with a code, or by a signal.
struct ExitStatus {
  bool signalled = false;
  int code = 0;              // exit code or signal number
  std::string text() const;  // "exit code 3", "signal 11 (Segmentation fault)"
};

class ChildProcess {
 public:
  // Throws MachineError when the program cannot be started or the logs cannot be written.
  explicit ChildProcess(const ProcessSpec& spec);
  ChildProcess(ChildProcess&&) = default;
  ChildProcess& operator=(ChildProcess&&) = delete;
  ~ChildProcess();

  pid_t pid() const { return pid_.value; }
  int exit_fd() const { return exit_fd_.get(); }      // readable once the process has ended
  int message_fd() const { return messages_.get(); }  // non-blocking read end of the pipe
  void signal_group(int signal) const;
  // The status once the process has ended; what it left running in its group is killed first.
  std::optional<ExitStatus> try_reap();

 private:
  struct Pid {  // moves as a handle should: the source no longer owns the process
    pid_t value = -1;
    Pid() = default;
    Pid(Pid&& other) noexcept : value(std::exchange(other.value, -1)) {}
  };
  Pid pid_;
  FileDescriptor exit_fd_;
  FileDescriptor messages_;
  bool reaped_ = false;
};

}  // namespace bench
