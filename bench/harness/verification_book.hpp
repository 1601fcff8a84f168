// Which verification jobs the cases of a plan need, each once, and what has become of them: cases
// of one group share a verification, and groups share single-device references.
#pragma once

#include "bench/harness/verifier.hpp"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace bench {

class VerificationBook {
 public:
  // The jobs that this case needs and nobody has asked for yet; may be empty.
  std::vector<Job> add(const Case& work);
  void put(const Job& job, JobOutcome outcome);
  // nullopt while an outcome is missing.
  std::optional<Verification> verdict(const Case& work) const;

 private:
  struct Group {
    std::string verify;  // keys of outcomes_
    std::string reference;
  };
  std::map<std::string, Group> groups_;
  std::map<std::string, std::optional<JobOutcome>> outcomes_;  // by job_to_json
};

}  // namespace bench
