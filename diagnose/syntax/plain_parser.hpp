// Parses text without errors by tree-sitter's tables, in a fraction of the time that tree-sitter
// takes: without what it keeps for editors, which change a text and parse it again. The result is
// the same. Where a text has an error, or two readings that only tree-sitter's own comparison can
// tell apart, this parser gives up and leaves the text to tree-sitter.
#pragma once

#include "diagnose/syntax/token_reader.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace bench::diagnose {

// A token, or a symbol of the grammar that stands for its children.
struct Piece {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  std::uint32_t first_child = 0;  // in PlainTree::children
  std::uint32_t child_count = 0;
  TSSymbol symbol = 0;
  std::uint16_t production = 0;
};

struct PlainTree {
  // An extra is a comment or a continued line: the grammar allows it anywhere, and does not count
  // it among the children of a rule.
  static constexpr std::uint32_t kExtra = 0x80000000U;
  // A symbol was left out of which the piece is the one child.
  static constexpr std::uint32_t kShort = 0x40000000U;
  static constexpr std::uint32_t kNoPiece = ~std::uint32_t{0};

  std::vector<Piece> pieces;
  std::vector<std::uint32_t> children;  // indices of pieces, with kExtra and kShort
  std::uint32_t root = kNoPiece;

  // The children of two pieces that have as many, side by side; the first ones come last.
  using Pairs = std::vector<std::pair<std::uint32_t, std::uint32_t>>;
  void add_children(const Piece& one, const Piece& other, Pairs& out) const {
    for (std::uint32_t at = one.child_count; at-- > 0;)
      out.emplace_back(children[one.first_child + at], children[other.first_child + at]);
  }

  const Piece& piece(std::uint32_t child) const { return pieces[child & ~(kExtra | kShort)]; }
};

class PlainParser {
 public:
  enum class Outcome : std::uint8_t { parsed, not_plain, timed_out };

  PlainParser(const TSLanguage& language, ParseTables& tables, std::string_view text,
              PlainTree& tree);

  // No limit when it is 0.
  Outcome parse(std::chrono::microseconds limit);

 private:
  struct Entry {
    std::uint32_t child;  // index of a piece, with kExtra and kShort
    TSStateId state;      // behind it
    TSSymbol symbol;      // that the piece stands for: its own, or one that was left out
    bool operator==(const Entry&) const = default;
  };

  // Readings that are alike on top share one stack in tree-sitter. Here each has its own, and notes
  // what matters when they become one.
  struct Parting {
    std::vector<Entry> base;  // of the stack, below what the reduction made
    TSStateId state;          // behind it
  };
  struct Joint {
    std::uint32_t group = 0;  // of readings that share a stack, above `size` entries; 0: none
    std::size_t size = 0;
    std::uint32_t parted_group = 0;  // that shared one before
    std::vector<Parting> partings = {};
    bool has_shifted = false;  // since then
    bool was_used() const { return group != 0 || parted_group != 0; }
  };

  // One reading of the text up to a position. There are several while the grammar cannot tell
  // which is meant: a, b may begin a tuple or an assignment.
  struct Reading {
    std::vector<Entry> stack;
    std::uint32_t position = 0;
    int precedence = 0;  // that the grammar gives to what is on the stack
    ScannerState scanner;
    Joint joint;
    bool goes_on = true;  // or has met a token that does not fit
  };

  enum class Merge : std::uint8_t { apart, joined, merged, unclear };

  bool advance(std::size_t at);
  bool is_late();
  bool take_token(const Reading& reading);
  bool can_take_again(TSStateId state);
  void shift(Reading& reading, TSSymbol symbol, bool is_extra, TSStateId state);
  std::uint32_t token_piece(TSSymbol symbol);
  bool reduce(std::size_t at, const TSParseAction& action, std::size_t& made);
  void reduce_stack(Reading& reading, const TSParseAction& action);
  std::uint32_t new_piece(const Reading& reading, std::size_t first, std::size_t last,
                          const TSParseAction& action);
  bool may_merge(std::size_t at, const TSParseAction& action);
  TSStateId state_after(const Reading& reading, const TSParseAction& action);
  std::uint32_t new_root(const Reading& reading);
  bool accept(Reading& reading);
  bool copy(std::size_t at);
  void erase(std::size_t at);
  Merge merge(std::size_t kept, std::size_t other);
  bool is_twin(std::uint32_t a, std::uint32_t b) const;
  Merge join(Reading& a, Reading& b);
  void note_parting(Reading& reading, std::size_t level, TSStateId state);
  static std::optional<bool> was_one_stack(const Joint& a, const Joint& b);
  std::optional<int> compare(std::uint32_t a, std::uint32_t b) const;
  std::optional<bool> is_second_preferred(const Reading& a, const Reading& b,
                                          std::size_t level) const;
  bool is_shared(std::size_t level, std::size_t kept, std::size_t other) const;
  bool condense();
  bool drop_stopped();

  const TSLanguage& language_;
  ParseTables& tables_;
  TokenReader reader_;
  PlainTree& tree_;
  std::vector<Reading> readings_;  // the first count_ are in use, the others keep their memory
  std::size_t count_ = 0;
  Token token_;                                   // the last one read
  std::uint32_t token_at_ = PlainTree::kNoPiece;  // the position it was read from
  ScannerState token_before_;
  std::uint32_t token_piece_ = PlainTree::kNoPiece;
  std::chrono::steady_clock::time_point deadline_;
  bool is_crowded_ = false;  // more than two readings, since there was one
  int root_precedence_ = 0;
  std::uint32_t groups_ = 0;
  std::uint32_t steps_ = 0;
  std::size_t looked_at_ = 0;  // characters read at the last look at the clock
  // Entries of stacks that were copied or compared; const functions compare trees, too.
  mutable std::uint64_t work_ = 0;
  std::uint64_t most_work_ = 0;
  bool is_late_ = false;
};

}  // namespace bench::diagnose
