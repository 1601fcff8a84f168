// One host thread per replica, as parallel_apply has them. The threads live as long as the
// strategy: a new thread per step would make OpenMP build a new team of workers for each.
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace bench::training {

class ReplicaThreads {
 public:
  explicit ReplicaThreads(std::size_t count);
  ~ReplicaThreads();
  ReplicaThreads(const ReplicaThreads&) = delete;
  ReplicaThreads& operator=(const ReplicaThreads&) = delete;

  // Runs work(i) on thread i for every i below `count`, with the caller's grad mode, and waits for
  // all. Rethrows the first exception in order of i.
  void run(std::size_t count, const std::function<void(std::size_t)>& work);

 private:
  void serve(std::size_t index);

  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable done_;
  std::function<void(std::size_t)> work_;
  std::vector<bool> pending_;
  std::size_t running_ = 0;
  std::vector<std::exception_ptr> failures_;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace bench::training
