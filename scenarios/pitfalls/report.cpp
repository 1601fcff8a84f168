#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/reach/certainty.hpp"
#include "scenarios/pitfalls/rule.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Kind;

Finding finding_of(const Rule& rule, Confidence confidence, std::string message) {
  Finding finding;
  finding.rule = rule.id;
  finding.name = rule.name;
  finding.category = rule.category;
  finding.severity = rule.severity;
  finding.confidence = confidence;
  finding.message = std::move(message);
  return finding;
}

Finding& Report::add(Confidence confidence, std::string message) {
  out_.push_back(finding_of(rule_, confidence, std::move(message)));
  return out_.back();
}

Finding& as_in_trial(Finding& finding, std::string_view form) {
  finding.trial = form;
  return finding;
}

Finding& in_no_trial(Finding& finding) { return as_in_trial(finding, diagnose::kNoTrial); }

void tell_as_note(Finding& finding) {
  finding.severity = Severity::info;
  finding.confidence = Confidence::check;
}

void tell_as_note(Finding& finding, const std::string& reason) {
  if (reason.empty()) return;
  tell_as_note(finding);
  finding.message += " (check: " + reason + ")";
}

Finding& Report::at(Ref where, Confidence confidence, std::string message) {
  Finding& finding = add(confidence, std::move(message));
  places_.emplace_back(out_.size() - 1, where);
  const auto& tree = where.module->tree();
  const auto& node = tree[where.node];
  finding.file = where.module->path();
  const diagnose::Position begin = tree.position(node.begin);
  // A compound statement is shown by its first line only.
  const std::string_view text = tree.text(where.node);
  const auto length = static_cast<std::uint32_t>(std::min(text.find_first_of("\r\n"), text.size()));
  const diagnose::Position end = tree.position(node.begin + length);
  finding.line = begin.line;
  finding.column = begin.column;
  finding.end_line = end.line;
  finding.end_column = end.column;
  return finding;
}

namespace {

// Under `if 0:` or `if False:`, which is never run.
bool is_switched_off(const Program& program, Ref where) {
  const auto guards = program.guards(where);
  return std::any_of(guards.begin(), guards.end(), [](const diagnose::Guard& guard) {
    const std::string_view condition = guard.condition.text();
    return (guard.holds && (condition == "0" || condition == "False")) ||
           (!guard.holds && (condition == "1" || condition == "True"));
  });
}

// Behind a statement of the same block that leaves it, whatever holds: raise, return, sys.exit().
bool is_left_before(Ref where) {
  const auto& tree = where.module->tree();
  for (auto at = where.node; at != 0 && at != diagnose::kNoNode; at = tree[at].parent) {
    const auto parent = tree[at].parent;
    if (parent == diagnose::kNoNode || tree[at].kind == Kind::function) return false;
    if (tree[parent].kind != Kind::block) continue;
    for (auto before = tree[parent].first_child; before != at; before = tree[before].next_sibling) {
      const Kind kind = tree[before].kind;
      if (kind == Kind::return_statement || kind == Kind::raise_statement ||
          kind == Kind::continue_statement || kind == Kind::break_statement)
        return true;
      if (facts::ends_process(where.with(before))) return true;
    }
  }
  return false;
}

// No call that can be followed leads there, or nothing shows several processes and no group is
// joined: a test of the rank has nothing to ask.
bool may_be_without_ranks(const Program& program, Ref where) {
  if (facts::certainty_of_reach(program, where) != facts::Certainty::certain) return true;
  return program.calls(diagnose::Api::init_process_group).empty() &&
         facts::certainty_of_ranks(program) != facts::Certainty::certain;
}

}  // namespace

void Report::settle(facts::Doubts& doubts) {
  for (const auto& [index, where] : places_) {
    Finding& finding = out_[index];
    if (finding.severity == Severity::info) continue;
    std::string doubt = doubts.about(rule_, where);
    if (doubt.empty()) doubt = doubts.about_configuration(rule_, where);
    if (rule_.id == "DDP039" && finding.fix && may_be_without_ranks(doubts.program(), where))
      finding.fix.reset();
    tell_as_note(finding, doubt);
    if (finding.confidence == Confidence::certain &&
        (doubts.one_by_setting(rule_) || doubts.is_left_out(rule_, where)))
      finding.confidence = Confidence::likely;
  }
  // From the last on, so that what stands before keeps its index.
  for (auto place = places_.rbegin(); place != places_.rend(); ++place)
    if (is_switched_off(doubts.program(), place->second) || is_left_before(place->second))
      out_.erase(out_.begin() + static_cast<std::ptrdiff_t>(place->first));
  places_.clear();
}

Finding& Report::at_word(const std::string& file, const diagnose::LaunchWord& word,
                         Confidence confidence, std::string message) {
  Finding& finding = add(confidence, std::move(message));
  finding.file = file;
  finding.line = finding.end_line = word.line;
  finding.column = word.column;
  finding.end_column = word.column + static_cast<std::uint32_t>(word.text.size());
  return finding;
}

}  // namespace bench::pitfalls
