// Expected outcomes are values, broken programs are exceptions: an Outcome holds a T or the reason
// why this machine or these parameters cannot give one ("needs 4 GPUs, found 1").
#pragma once

#include <string>
#include <utility>
#include <variant>

namespace bench {

struct Skip {
  std::string reason;
};

template <class T>
class [[nodiscard]] Outcome {
 public:
  Outcome(T value) : held_(std::move(value)) {}
  Outcome(Skip skip) : held_(std::move(skip)) {}

  bool has_value() const { return std::holds_alternative<T>(held_); }
  explicit operator bool() const { return has_value(); }
  T& value() { return std::get<T>(held_); }
  const T& value() const { return std::get<T>(held_); }
  const Skip& skip() const { return std::get<Skip>(held_); }

 private:
  std::variant<T, Skip> held_;
};

}  // namespace bench
