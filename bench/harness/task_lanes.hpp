// A few threads that work through a list of tasks in order. Only for work whose time is simulated:
// what is measured has the machine for itself.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace bench {

class TaskLanes {
 public:
  explicit TaskLanes(int lanes);
  TaskLanes(const TaskLanes&) = delete;
  TaskLanes& operator=(const TaskLanes&) = delete;
  // Tasks that have begun are finished, the others are dropped.
  ~TaskLanes();

  void add(std::function<void()> task);
  // The first exception that a task threw; nothing else runs after it.
  std::exception_ptr failure() const;
  // Called in a lane after every task; set before the first add().
  std::function<void()> after_task;

 private:
  void work();

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  std::exception_ptr failure_;
  bool ending_ = false;
  // Workers die with the thread that started them (die_with_parent), so lanes live to the end.
  std::vector<std::thread> threads_;
};

}  // namespace bench
