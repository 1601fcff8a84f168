#include "training/data/prefetcher.hpp"

#include <algorithm>
#include <utility>

namespace bench::training {

Prefetcher::Prefetcher(Make make, int workers, int depth)
    : make_(std::move(make)), ring_(static_cast<std::size_t>(std::max(1, depth))) {
  for (int i = 0; i < workers; ++i) threads_.emplace_back([this] { work(); });
}

Prefetcher::~Prefetcher() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  room_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Prefetcher::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    room_.wait(lock, [this] {
      return ending_ || started_ < taken_ + static_cast<std::int64_t>(ring_.size());
    });
    if (ending_) return;
    const std::int64_t index = started_++;
    lock.unlock();
    Place made;
    try {
      made.batch = make_(index);
    } catch (...) {
      made.error = std::current_exception();
    }
    lock.lock();
    place(index) = std::move(made);
    ready_.notify_all();
  }
}

Batch Prefetcher::next() {
  if (threads_.empty()) return make_(taken_++);
  std::unique_lock lock(mutex_);
  Place& wanted = place(taken_);
  ready_.wait(lock, [&] { return wanted.batch || wanted.error; });
  const Place made = std::exchange(wanted, Place{});
  ++taken_;
  room_.notify_one();
  if (made.error) std::rethrow_exception(made.error);
  return *made.batch;
}

}  // namespace bench::training
