#include "tests/cli/run_bench.hpp"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <thread>

namespace bench::cli_test {
namespace {

namespace fs = std::filesystem;

std::string contents(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void redirect(int target, const fs::path& path) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (fd < 0 || dup2(fd, target) < 0) _exit(126);
  close(fd);
}

[[noreturn]] void become_bench(const fs::path& home, const std::vector<std::string>& arguments,
                               const Environment& extra) {
  if (chdir(home.c_str()) != 0) _exit(126);
  redirect(STDOUT_FILENO, home / ".stdout");
  redirect(STDERR_FILENO, home / ".stderr");
  if (const int input = open((home / ".stdin").c_str(), O_RDONLY); input >= 0) {
    if (dup2(input, STDIN_FILENO) < 0) _exit(126);
    close(input);
  }
  setenv("BENCH_WORKER", "mock", 1);
  setenv("CUDA_VISIBLE_DEVICES", "", 1);
  for (const auto& [name, value] : extra) {
    value == "(unset)" ? unsetenv(name.c_str()) : setenv(name.c_str(), value.c_str(), 1);
    if (name == "PWD" && chdir(value.c_str()) != 0) _exit(126);
  }
  std::vector<char*> argv{const_cast<char*>(BENCH_PROGRAM)};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  execv(BENCH_PROGRAM, argv.data());
  _exit(127);
}

}  // namespace

fs::path Workspace::write(const std::string& name, const std::string& text) const {
  std::ofstream(path() / name, std::ios::binary) << text;
  return path() / name;
}

std::string Workspace::read(const std::string& name) const { return contents(path() / name); }

bool Workspace::has(const std::string& name) const { return fs::exists(path() / name); }

Answer Workspace::bench(const std::vector<std::string>& arguments, const Environment& extra) const {
  return wait_for(start(arguments, extra));
}

Answer Workspace::bench_reading(const std::string& input, const std::vector<std::string>& arguments,
                                const Environment& extra) const {
  write(".stdin", input);
  Answer answer = bench(arguments, extra);
  fs::remove(path() / ".stdin");
  return answer;
}

Answer Workspace::bench_interrupted_at(const std::string& progress,
                                       const std::vector<std::string>& arguments,
                                       const Environment& extra) const {
  using Clock = std::chrono::steady_clock;
  fs::remove(path() / ".stderr");  // of an earlier call
  const int child = start(arguments, extra);
  const auto give_up = Clock::now() + std::chrono::seconds(60);
  while (read(".stderr").find(progress) == std::string::npos && Clock::now() < give_up)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  kill(child, SIGINT);
  return wait_for(child);
}

int Workspace::start(const std::vector<std::string>& arguments, const Environment& extra) const {
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("cannot fork");
  if (child == 0) become_bench(path(), arguments, extra);
  return child;
}

Answer Workspace::wait_for(int child) const {
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
  }
  Answer answer;
  answer.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  answer.out = contents(path() / ".stdout");
  answer.err = contents(path() / ".stderr");
  return answer;
}

}  // namespace bench::cli_test
