// A pitfall as a rule: its identity, its page, a check of static evidence (a user's program) and a
// judge of dynamic evidence (a run).
// One pitfall is one .cpp, one .md of the same name and one line in registry.cpp.
#pragma once

#include "diagnose/finding.hpp"
#include "diagnose/model/program.hpp"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bench::pitfalls {

using diagnose::CallRef;
using diagnose::Category;
using diagnose::Confidence;
using diagnose::Finding;
using diagnose::Program;
using diagnose::Ref;
using diagnose::Severity;

// Whether a script alone, a run alone, or both can show a pitfall; partial: only some of its forms.
enum class Evidence : std::uint8_t { none, partial, full };

struct Rule;
class RunEvidence;
class RunReport;
namespace facts {
class Doubts;
}

// What may be no mistake, or none yet, is told as a note to check.
void tell_as_note(Finding& finding);
// The same, with the reason in its text; an empty reason changes nothing.
void tell_as_note(Finding& finding, const std::string& reason);

// The mistake is that of the laboratory's trial of this form, whose figure is its cost; or no trial
// makes it, whatever the rule's trials cost. Nothing need be said where all trials of a rule agree.
Finding& as_in_trial(Finding& finding, std::string_view form);
Finding& in_no_trial(Finding& finding);

// Takes what one rule reports about one program.
class Report {
 public:
  Report(const Rule& rule, std::vector<Finding>& out) : rule_(rule), out_(out) {}

  Finding& at(Ref where, Confidence confidence, std::string message);
  Finding& at_word(const std::string& file, const diagnose::LaunchWord& word, Confidence confidence,
                   std::string message);
  // Once the rule is done: findings that rest on more than is known become notes that say so.
  void settle(facts::Doubts& doubts);

 private:
  Finding& add(Confidence confidence, std::string message);

  const Rule& rule_;
  std::vector<Finding>& out_;
  std::vector<std::pair<std::size_t, Ref>> places_;  // index of a finding, where it stands
};

struct Rule {
  std::string_view id;    // DDP018
  std::string_view name;  // missing-set-epoch
  Category category;
  Severity severity;  // of its usual finding; one that is less sure may report less
  Evidence statically;
  Evidence dynamically;
  void (*check)(const Program&, Report&);  // null where a script shows nothing
  // Null where a run shows nothing; see run_evidence.hpp.
  void (*judge)(const RunEvidence&, RunReport&) = nullptr;
};

// A finding of `rule`, not yet at a place: what reports about scripts and about runs begin with.
Finding finding_of(const Rule& rule, Confidence confidence, std::string message);

// The rule's Markdown page, embedded at build time.
std::string_view page_of(const Rule& rule);

}  // namespace bench::pitfalls
