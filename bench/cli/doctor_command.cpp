// bench doctor: what this machine can and cannot do, and why. The exit code is 0 whatever is
// missing: the answer is the result.
#include "bench/cli/commands.hpp"
#include "bench/cli/doctor_checks.hpp"
#include "bench/cli/flag_parser.hpp"
#include "bench/cli/help.hpp"
#include "bench/core/error.hpp"

#include <nlohmann/json.hpp>

#include <cstdio>

namespace bench::cli {
namespace {

constexpr Flag kFlags[] = {
    {"--format", "text|json", "how to print (default: text)", "flags", "json"},
    {"--worker", "PROGRAM", "", "flags", "mock"},
};

void print_text(const std::vector<Diagnosis>& diagnoses) {
  for (const Diagnosis& diagnosis : diagnoses) {
    std::printf("%-13s  %-3s  %s\n", diagnosis.subject.c_str(), diagnosis.able ? "yes" : "no",
                diagnosis.detail.c_str());
    for (const std::string& line : diagnosis.further) std::printf("%20s%s\n", "", line.c_str());
  }
}

void print_json(const std::vector<Diagnosis>& diagnoses) {
  auto list = nlohmann::ordered_json::array();
  for (const Diagnosis& diagnosis : diagnoses) {
    list.push_back({{"subject", diagnosis.subject},
                    {"able", diagnosis.able},
                    {"detail", diagnosis.detail},
                    {"further", diagnosis.further}});
  }
  std::printf("%s\n", list.dump(2).c_str());
}

}  // namespace

int doctor_command(const Arguments& arguments) {
  const Typed typed = parse_flags(arguments, kFlags, "bench doctor");
  if (!typed.words.empty()) {
    throw UsageError("bench doctor: unexpected '" + typed.words[0] + "'");
  }
  const std::string format = choice(typed, "--format", {"text", "json"});
  const auto diagnoses = examine_machine(typed.value("--worker").value_or(""));
  format == "json" ? print_json(diagnoses) : print_text(diagnoses);
  return kExitClean;
}

}  // namespace bench::cli
