#include "training/devices/communication_timer.hpp"

#include "training/devices/communication_spans.hpp"

#include <ATen/cuda/CUDAEvent.h>
#include <c10/cuda/CUDAStream.h>

#include <pthread.h>
#include <time.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <utility>

namespace bench::training {
namespace {

constexpr double kNsPerMs = 1e6;

std::int64_t nanoseconds(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

double sent(TimedCollective kind, std::uint64_t payload_bytes, int ranks) {
  return static_cast<double>(kind == TimedCollective::all_reduce
                                 ? all_reduce_bytes(payload_bytes, ranks)
                                 : broadcast_bytes(payload_bytes, ranks));
}

// Stamp is one reading of the device's clock. A subclass takes readings and says what they mean.
template <class Stamp>
class StampingTimer : public CommunicationTimer {
 public:
  explicit StampingTimer(int ranks) : ranks_(ranks) {}

  void begin_step() override {
    const std::lock_guard lock(mutex_);
    collectives_.clear();
    sent_bytes_ = 0;
    in_step_ = true;
    begin_ = stamp();
  }

  void end_step() override {
    end_ = stamp();
    const std::lock_guard lock(mutex_);
    in_step_ = false;
  }

  CommunicationTimes times() override {
    std::unique_lock lock(mutex_);
    // The thread that waited for a collective may go on before the callback has taken its time.
    all_ended_.wait(lock, [this] { return under_way_ == 0; });
    CommunicationTimes times = evaluate(begin_, end_, collectives_);
    times.sent_bytes = sent_bytes_;
    return times;
  }

  c10::intrusive_ptr<c10d::Work> issue(TimedCollective kind, std::uint64_t payload_bytes,
                                       const Call& call) override {
    std::size_t index = 0;
    {
      const std::lock_guard lock(mutex_);
      if (!in_step_) return call();
      index = collectives_.size();
      collectives_.push_back({kind, stamp(), {}});
      sent_bytes_ += sent(kind, payload_bytes, ranks_);
      ++under_way_;
    }
    try {
      auto work = call();
      work->getFuture()->addCallback(
          [this, self = shared_from_this(), index](c10::ivalue::Future&) { ended(index); });
      return work;
    } catch (...) {
      ended(index);
      throw;
    }
  }

 protected:
  struct Collective {
    TimedCollective kind;
    Stamp begin;
    Stamp end;
  };

  virtual Stamp stamp() = 0;
  virtual CommunicationTimes evaluate(const Stamp& begin, const Stamp& end,
                                      const std::vector<Collective>& collectives) = 0;

 private:
  void ended(std::size_t index) {
    Stamp end = stamp();
    const std::lock_guard lock(mutex_);
    collectives_[index].end = std::move(end);
    --under_way_;
    all_ended_.notify_all();
  }

  const int ranks_;
  std::mutex mutex_;
  std::condition_variable all_ended_;
  int under_way_ = 0;
  bool in_step_ = false;
  double sent_bytes_ = 0;
  Stamp begin_;
  Stamp end_;
  std::vector<Collective> collectives_;
};

class HostTimer final : public StampingTimer<ClockReading> {
 public:
  using StampingTimer::StampingTimer;

  void begin_step() override {
    ::pthread_getcpuclockid(::pthread_self(), &processor_clock_);
    StampingTimer::begin_step();
  }

 private:
  ClockReading stamp() override {
    return {nanoseconds(CLOCK_MONOTONIC), nanoseconds(processor_clock_)};
  }

  CommunicationTimes evaluate(const ClockReading& begin, const ClockReading& end,
                              const std::vector<Collective>& collectives) override {
    std::vector<ClockReading> readings{begin, end};
    std::vector<CollectiveSpan> spans;
    CommunicationTimes times;
    for (const Collective& collective : collectives) {
      spans.push_back({readings.size(), readings.size() + 1});
      readings.push_back(collective.begin);
      readings.push_back(not_after(collective.end, end));
      if (collective.kind != TimedCollective::all_reduce) continue;
      const std::int64_t wall_ns = readings.back().wall_ns - collective.begin.wall_ns;
      times.all_reduce_ms.push_back(static_cast<double>(wall_ns) / kNsPerMs);
    }
    const SpanTimes all = times_of(readings, spans);
    times.compute_ms = static_cast<double>(all.compute_ns) / kNsPerMs;
    times.communication_ms = static_cast<double>(all.communication_ns) / kNsPerMs;
    times.exposed_ms = static_cast<double>(all.exposed_ns) / kNsPerMs;
    return times;
  }

  clockid_t processor_clock_ = CLOCK_THREAD_CPUTIME_ID;  // of the thread that trains
};

// Readings are CUDA events on the current stream: the computing stream where a collective is
// issued, and in the callback a stream that waits for it.
class CudaTimer final : public StampingTimer<at::cuda::CUDAEvent> {
 public:
  CudaTimer(c10::Device device, int ranks) : StampingTimer(ranks), device_(device) {}

 private:
  at::cuda::CUDAEvent stamp() override {
    at::cuda::CUDAEvent event(cudaEventDefault);
    event.record(c10::cuda::getCurrentCUDAStream(device_.index()));
    return event;
  }

  CommunicationTimes evaluate(const at::cuda::CUDAEvent& begin, const at::cuda::CUDAEvent& end,
                              const std::vector<Collective>& collectives) override {
    end.synchronize();
    CommunicationTimes times;
    std::vector<TimeInterval> all;
    std::vector<TimeInterval> exposed;
    double gradients_exist = 0;
    for (const Collective& collective : collectives) {
      collective.end.synchronize();
      const TimeInterval span{begin.elapsed_time(collective.begin),
                              begin.elapsed_time(collective.end)};
      all.push_back(span);
      if (collective.kind == TimedCollective::broadcast) exposed.push_back(span);
      if (collective.kind != TimedCollective::all_reduce) continue;
      gradients_exist = std::max(gradients_exist, span.begin);
      times.all_reduce_ms.push_back(span.end - span.begin);
    }
    for (const TimeInterval& span : all) {
      if (span.end > gradients_exist && !times.all_reduce_ms.empty()) {
        exposed.push_back({std::max(span.begin, gradients_exist), span.end});
      }
    }
    times.communication_ms = united_length(std::move(all));
    times.exposed_ms = united_length(std::move(exposed));
    return times;
  }

  const c10::Device device_;
};

}  // namespace

std::shared_ptr<CommunicationTimer> make_communication_timer(c10::Device device, int world_size) {
  if (device.is_cuda()) return std::make_shared<CudaTimer>(device, world_size);
  return std::make_shared<HostTimer>(world_size);
}

}  // namespace bench::training
