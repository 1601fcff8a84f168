#include "bench/launch/interrupt.hpp"

#include "bench/core/error.hpp"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>

namespace bench {
namespace {

// A signal handler can reach nothing but statics; one Interrupt at a time owns them.
std::atomic<int> event_fd{-1};
std::atomic<int> signals{0};

void on_signal(int) {
  const int saved = errno;
  signals.fetch_add(1);
  const std::uint64_t one = 1;
  if (::write(event_fd.load(), &one, sizeof(one)) < 0) {
    // The counter above is what decides; a failed write only delays the waiter.
  }
  errno = saved;
}

}  // namespace

Interrupt::Interrupt() {
  const int fd = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (fd < 0) throw MachineError(std::string("eventfd: ") + std::strerror(errno));
  signals = 0;
  event_fd = fd;
  struct sigaction action {};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  ::sigaction(SIGINT, &action, &old_int_);
  ::sigaction(SIGTERM, &action, &old_term_);
}

Interrupt::~Interrupt() {
  ::sigaction(SIGINT, &old_int_, nullptr);
  ::sigaction(SIGTERM, &old_term_, nullptr);
  ::close(event_fd.exchange(-1));
}

int Interrupt::fd() const { return event_fd.load(); }
int Interrupt::count() const { return signals.load(); }

}  // namespace bench
