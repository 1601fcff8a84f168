#include "bench/harness/task_lanes.hpp"

#include <utility>

namespace bench {

TaskLanes::TaskLanes(int lanes) {
  for (int i = 0; i < lanes; ++i) threads_.emplace_back([this] { work(); });
}

TaskLanes::~TaskLanes() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    tasks_.clear();
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void TaskLanes::add(std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  changed_.notify_one();
}

std::exception_ptr TaskLanes::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

void TaskLanes::work() {
  for (;;) {
    std::function<void()> task;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return ending_ || !tasks_.empty(); });
      if (tasks_.empty()) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    try {
      task();
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!failure_) failure_ = std::current_exception();
      tasks_.clear();
    }
    if (after_task) after_task();
  }
}

}  // namespace bench
