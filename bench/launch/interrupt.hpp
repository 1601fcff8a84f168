// Ctrl-C and SIGTERM as something a poll loop can wait for. While an Interrupt lives, the two
// signals no longer end the program: they make fd() readable, for good and for every waiter. Its
// destructor restores the handlers that were there before.
#pragma once

#include <signal.h>

namespace bench {

inline constexpr int kExitInterrupted = 130;  // 128 + SIGINT, as shells report it

class Interrupt {
 public:
  Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;
  ~Interrupt();

  int fd() const;
  // Number of signals so far; the second one asks for the end without grace.
  int count() const;
  bool requested() const { return count() > 0; }

 private:
  struct sigaction old_int_ {};
  struct sigaction old_term_ {};
};

}  // namespace bench
