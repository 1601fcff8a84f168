// Comments `# bench: ignore[RULE, ...] reason` that silence findings, and which of them do.
#pragma once

#include "diagnose/finding.hpp"
#include "diagnose/syntax/tree.hpp"

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace bench::diagnose {

// What every such comment begins with, behind its #.
inline constexpr std::string_view kIgnoreMark = "bench: ignore";

struct IgnoreComment {
  std::size_t begin = 0;  // of its # in the line
  bool has_list = false;  // without one it is for all rules
  std::size_t list_begin = 0;
  std::size_t list_end = 0;             // where its ] is, or the line ends
  std::vector<std::string_view> rules;  // ids and names as they are written
};

// Those of one line, from left to right.
std::vector<IgnoreComment> ignore_comments_of(std::string_view line);

// One of the line's comments is for this rule, or for all.
bool is_silenced(std::string_view line, const Finding& finding);

// Where comments on the lines of a script stand: on the line itself, or, where that ends within a
// string or in a backslash, on the next one that does not.
class CommentLines {
 public:
  explicit CommentLines(const SyntaxTree& tree);
  std::uint32_t line_for(std::uint32_t line) const;

 private:
  std::vector<bool> goes_on_;  // by line, from 1
};

// Which comments have silenced something. Safe to use from several threads.
class UsedIgnores {
 public:
  void note(const std::string& file, std::uint32_t line, const std::string& rule) {
    const std::lock_guard lock(mutex_);
    used_.emplace(file, line, rule);
  }
  bool has(const std::string& file, std::uint32_t line, std::string_view rule) const {
    const std::lock_guard lock(mutex_);
    return used_.contains({file, line, std::string(rule)});
  }
  // For whatever rule.
  bool has(const std::string& file, std::uint32_t line) const {
    const std::lock_guard lock(mutex_);
    const auto first = used_.lower_bound({file, line, std::string()});
    return first != used_.end() && std::get<0>(*first) == file && std::get<1>(*first) == line;
  }

 private:
  mutable std::mutex mutex_;
  std::set<std::tuple<std::string, std::uint32_t, std::string>> used_;
};

}  // namespace bench::diagnose
