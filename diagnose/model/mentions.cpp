#include "diagnose/model/mentions.hpp"

#include <algorithm>
#include <iterator>

namespace bench::diagnose {
namespace {

// The word stands in the source, and not in a comment alone.
bool says(const SyntaxTree& tree, std::string_view word) {
  if (!tree.holds(word)) return false;
  const std::string_view source = tree.source();
  const auto& comments = tree.comments();
  for (std::size_t at = source.find(word); at != std::string_view::npos;
       at = source.find(word, at + 1)) {
    const auto next = std::upper_bound(comments.begin(), comments.end(), at,
                                       [](std::size_t offset, const SyntaxTree::Comment& comment) {
                                         return offset < comment.begin;
                                       });
    if (next == comments.begin() || at >= std::prev(next)->end) return true;
  }
  return false;
}

}  // namespace

bool Mentions::has(const SyntaxTree& tree, std::string_view word) {
  const std::lock_guard lock(mutex_);
  if (const auto known = known_.find(word); known != known_.end()) return known->second;
  ++searches_;
  const bool found = says(tree, word);
  if (known_.size() < kMostWords) known_.emplace(word, found);
  return found;
}

std::size_t Mentions::searches() const {
  const std::lock_guard lock(mutex_);
  return searches_;
}

}  // namespace bench::diagnose
