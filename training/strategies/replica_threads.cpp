#include "training/strategies/replica_threads.hpp"

#include "training/devices/recorder.hpp"

#include <ATen/ThreadLocalState.h>

#include <string>

namespace bench::training {
namespace {

std::string thread_name(std::size_t index) { return "replica:" + std::to_string(index); }

}  // namespace

ReplicaThreads::ReplicaThreads(std::size_t count) : pending_(count, false), failures_(count) {
  for (std::size_t i = 0; i < count; ++i) threads_.emplace_back([this, i] { serve(i); });
}

ReplicaThreads::~ReplicaThreads() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  for (auto& thread : threads_) thread.join();
}

void ReplicaThreads::run(std::size_t count, const std::function<void(std::size_t)>& work) {
  const auto from = fork();
  const at::ThreadLocalState state;
  {
    std::unique_lock lock(mutex_);
    work_ = [&](std::size_t index) {
      const at::ThreadLocalStateGuard guard(state);
      const HostThreadScope scope(thread_name(index), from);
      work(index);
    };
    for (std::size_t i = 0; i < count; ++i) pending_[i] = true;
    running_ = count;
    wake_.notify_all();
    done_.wait(lock, [this] { return running_ == 0; });
  }
  for (std::size_t i = 0; i < count; ++i) join(thread_name(i));
  for (auto& failure : failures_) {
    if (failure) std::rethrow_exception(std::exchange(failure, nullptr));
  }
}

void ReplicaThreads::serve(std::size_t index) {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [&] { return stop_ || pending_[index]; });
    if (stop_) return;
    pending_[index] = false;
    lock.unlock();
    std::exception_ptr failure;
    try {
      work_(index);
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    failures_[index] = failure;
    if (--running_ == 0) done_.notify_all();
  }
}

}  // namespace bench::training
