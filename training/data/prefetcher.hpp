// Worker threads that make batches ahead of their use. Batch i is make(i) whoever makes it, and
// batches come out in order, so the number of workers changes the speed and nothing else.
#pragma once

#include "training/data/batch_source.hpp"

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace bench::training {

class Prefetcher {
 public:
  using Make = std::function<Batch(std::int64_t index)>;

  // `make` is called from several threads at once. At most `depth` batches are ready or in the
  // making; without workers next() makes the batch itself.
  Prefetcher(Make make, int workers, int depth);
  ~Prefetcher();
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  // Waits for the next batch. An exception of make(i) comes out at batch i.
  Batch next();

 private:
  struct Place {
    std::optional<Batch> batch;
    std::exception_ptr error;
  };
  void work();
  Place& place(std::int64_t index) { return ring_[static_cast<std::size_t>(index) % ring_.size()]; }

  Make make_;
  std::mutex mutex_;
  std::condition_variable ready_;  // a batch was made
  std::condition_variable room_;   // a batch was taken, or all ends
  std::vector<Place> ring_;
  std::int64_t taken_ = 0;    // batches that next() has given away
  std::int64_t started_ = 0;  // batches that a worker has begun
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace bench::training
