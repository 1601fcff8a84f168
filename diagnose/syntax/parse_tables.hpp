// The tables of the generated Python parser. Most states list their symbols, which its own library
// searches at each step; here a state's row is spread out when it is first met.
#pragma once

#include <tree_sitter/parser.h>

#include <cstdint>
#include <span>
#include <vector>

namespace bench::diagnose {

class ParseTables {
 public:
  struct Actions {
    std::span<const TSParseActionEntry> entries;  // each an action
    bool reusable;  // its token is the same in every state that reads it like this one
  };

  explicit ParseTables(const TSLanguage& language);

  // For a token the number of its actions, for another symbol the state that follows; 0: none.
  std::uint16_t at(TSStateId state, TSSymbol symbol) {
    if (rows_[state] == nullptr) spread(state);
    return rows_[state][symbol];
  }

  Actions actions(TSStateId state, TSSymbol token) {
    const TSParseActionEntry* head = language_.parse_actions + at(state, token);
    return {{head + 1, head->entry.count}, head->entry.reusable};
  }

  // Whether the lexer takes plain words for names in a state of its own; true once it has read one.
  char& reads_names(std::uint16_t lex_state, bool behind_blank) {
    return reads_names_[2 * std::size_t{lex_state} + (behind_blank ? 1 : 0)];
  }

  // Whether no keyword begins with these two letters; true once the lexer has met the second.
  char& begins_no_keyword(char first, char second) {
    return begins_no_keyword_[std::size_t{static_cast<unsigned char>(first)} * 256 +
                              static_cast<unsigned char>(second)];
  }

  // Whether the grammar's scanner may be inside a string when it is asked in a state of its own.
  bool scans_strings(std::uint16_t external_lex_state) const {
    return scans_strings_[external_lex_state];
  }

  // Whether a node of one child can be left out: nobody sees it, by this or by another name.
  bool is_transparent(TSSymbol symbol) const { return transparent_[symbol]; }

 private:
  void spread(TSStateId state);

  const TSLanguage& language_;
  std::vector<const std::uint16_t*> rows_;
  std::vector<std::vector<std::uint16_t>> spread_;
  std::vector<char> transparent_;
  std::vector<char> scans_strings_;
  std::vector<char> reads_names_;
  std::vector<char> begins_no_keyword_;
};

}  // namespace bench::diagnose
