// What a file is asked for by some programs only, and answers from itself alone: found when it is
// first asked for, and kept for all programs that share the file. Safe to ask from several threads.
#pragma once

#include <mutex>

namespace bench::diagnose {

template <typename Value>
class KeptOnce {
 public:
  // `make` gives the same at every call.
  template <typename Make>
  const Value& get(const Make& make) const {
    std::call_once(made_, [&] { value_ = make(); });
    return value_;
  }

 private:
  mutable std::once_flag made_;
  mutable Value value_;
};

}  // namespace bench::diagnose
