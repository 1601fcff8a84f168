// Loaders with too few workers, so that every step waits for its samples, and with more than the
// machine has cores, so that preparing a batch takes many times its work.
#include "training/devices/recorder.hpp"
#include "training/models/layers.hpp"
#include "training/pitfalls/state_experiments.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <ctime>
#include <thread>

namespace bench::training {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kLoadedSteps = 30;
constexpr std::chrono::milliseconds kReading{16};  // one batch from a disk
constexpr std::chrono::milliseconds kStepTime{8};
constexpr int kCrowd = 16;  // workers of a rank, where they are too many
constexpr double kDecodeCpuSeconds = 0.01;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Worker threads that read batches ahead.
class Readers {
 public:
  explicit Readers(int workers) {
    for (int i = 0; i < workers; ++i) threads_.emplace_back([this] { read(); });
  }
  ~Readers() {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
  }
  void take() {
    std::unique_lock lock(mutex_);
    arrived_.wait(lock, [&] { return ready_ > 0; });
    --ready_;
  }

 private:
  void read() {
    while (!stop_) {
      std::this_thread::sleep_for(kReading);
      const std::lock_guard lock(mutex_);
      ++ready_;
      arrived_.notify_one();
    }
  }

  std::mutex mutex_;
  std::condition_variable arrived_;
  int ready_ = 0;
  std::atomic<bool> stop_ = false;
  std::vector<std::thread> threads_;
};

void starve(Lab& lab) {
  const int workers = lab.cured() ? 4 : 0;
  const auto model = lab.model(linear({.in = 4, .out = 4}), lab.seed());
  const auto ddp = lab.wrap(*model);
  Readers readers(workers);
  double waited = 0;
  const auto begin = Clock::now();
  for (int step = 0; step < kLoadedSteps; ++step) {
    const auto asked = Clock::now();
    workers > 0 ? readers.take() : std::this_thread::sleep_for(kReading);
    waited += seconds_since(asked);
    clear_gradients(*model);
    std::this_thread::sleep_for(kStepTime);  // the GPU's work
    run_backward(call(*ddp, rank_input(lab)).sum());
  }
  Json& evidence = lab.evidence();
  evidence["data_wait_seconds"] = waited;
  evidence["training_seconds"] = seconds_since(begin);
  evidence["loader_workers"] = workers;
}

double thread_cpu_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Decodes: a fixed amount of CPU time. Returns how long that took since the batch was asked for: a
// scheduler may let crowding workers take turns, or one wait for the other.
double decode(Clock::time_point asked) {
  const double until = thread_cpu_seconds() + kDecodeCpuSeconds;
  while (thread_cpu_seconds() < until) {
  }
  return seconds_since(asked);
}

void crowd(Lab& lab) {
  const int cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  const int fitting = std::max(1, cores / lab.world_size());
  const int workers = lab.cured() ? fitting : std::max(kCrowd, 4 * fitting);
  lab.all_reduce_sum(0);  // the ranks start together
  std::vector<double> took(static_cast<std::size_t>(workers));
  std::vector<std::thread> threads;
  const auto asked = Clock::now();
  for (double& each : took) threads.emplace_back([&each, asked] { each = decode(asked); });
  double total = 0;
  for (int i = 0; i < workers; ++i) {
    threads[static_cast<std::size_t>(i)].join();
    total += took[static_cast<std::size_t>(i)];
  }
  Json& evidence = lab.evidence();
  evidence["loader_workers"] = workers;
  evidence["cores"] = cores;
  evidence["decode_cpu_seconds"] = kDecodeCpuSeconds;
  evidence["decode_seconds"] = total / workers;
}

}  // namespace

void loader_oversubscription(Lab& lab) { lab.form() == "too-few" ? starve(lab) : crowd(lab); }

}  // namespace bench::training
