// Errors that end the program or a case. main() catches once and maps them to exit codes.
#pragma once

#include <stdexcept>
#include <string>

namespace bench {

// Exit codes are API (INTERFACE): 0 done and clean.
inline constexpr int kExitClean = 0;
inline constexpr int kExitFindings = 1;  // findings, a regression or a wrong result
inline constexpr int kExitUsage = 2;     // bad usage or bad input
inline constexpr int kExitMachine = 3;   // the machine cannot do it

class Error : public std::runtime_error {
 public:
  Error(int exit_code, const std::string& message)
      : std::runtime_error(message), exit_code_(exit_code) {}
  int exit_code() const { return exit_code_; }

 private:
  int exit_code_;
};

// The user asked for something that does not exist or contradicts itself; the message names the
// flag or file:line and says what was expected.
class UsageError : public Error {
 public:
  explicit UsageError(const std::string& message) : Error(kExitUsage, message) {}
};

// The request is sound but this machine cannot serve it (no such GPU, no space, no worker program).
class MachineError : public Error {
 public:
  explicit MachineError(const std::string& message) : Error(kExitMachine, message) {}
};

}  // namespace bench
