// What this machine can and cannot do, and why: one function per subject, each with a verdict. A
// subject is a row of the table in doctor_checks.cpp.
#pragma once

#include <string>
#include <vector>

namespace bench::cli {

struct Diagnosis {
  std::string subject;
  bool able = true;
  std::string detail;                // what was found, or why it is missing
  std::vector<std::string> further;  // lines below it
};

// `worker` is --worker as typed. Starts the worker program once to ask what it sees.
std::vector<Diagnosis> examine_machine(const std::string& worker);

}  // namespace bench::cli
