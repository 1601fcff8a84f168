// What the outcomes of the verification jobs mean for a case.
#pragma once

#include "bench/core/case_result.hpp"
#include "bench/launch/job_runner.hpp"

#include <cstdint>
#include <string>

namespace bench {

struct Verification {
  enum class State : std::uint8_t {
    equal,
    wrong,    // times are withheld
    failed,   // the run itself failed; so has the case
    skipped,  // this machine or its memory cannot serve the run; neither can it the case
    interrupted,
    reference_too_large,  // the whole batch does not fit one device; verify a smaller one
  };
  State state = State::equal;
  std::string text;
};

// What a single-device case says: there is nothing to compare it with.
Verification verified_as_reference();

Verification judge(const Case& work, const JobOutcome& verify, const JobOutcome& reference);

// Puts the verification's word into a result: `verified`, or no times and the reason.
void apply(const Verification& verification, CaseResult& result);

}  // namespace bench
