// Which words a file's text has outside of its comments. Programs that share the file ask for the
// same ones: each is looked for once. Safe to ask from several threads.
#pragma once

#include "diagnose/model/by_text.hpp"
#include "diagnose/syntax/tree.hpp"

#include <cstddef>
#include <mutex>
#include <string_view>

namespace bench::diagnose {

class Mentions {
 public:
  bool has(const SyntaxTree& tree, std::string_view word);
  std::size_t searches() const;  // of the text so far, for tests

 private:
  static constexpr std::size_t kMostWords = 512;  // rules name about 150; the rest are options

  mutable std::mutex mutex_;
  ByText<bool> known_;
  std::size_t searches_ = 0;
};

}  // namespace bench::diagnose
