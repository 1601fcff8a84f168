// Reads the tokens of a text as tree-sitter's own lexer does, for the generated functions that
// recognise them: the same tokens, from text that lies in memory as a whole and is all to be read.
#pragma once

#include "diagnose/syntax/parse_tables.hpp"

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace bench::diagnose {

// What the grammar's scanner (indentation, open strings) had seen, as bytes of the reader.
struct ScannerState {
  std::uint32_t begin = 0;
  std::uint32_t size = 0;
};

struct Token {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  TSSymbol symbol = 0;
  TSStateId state = 0;      // it was read in
  bool is_keyword = false;  // or begins like one
  bool is_scanned = false;  // by the grammar's scanner, which then was in the state below
  ScannerState after;
};

class TokenReader : private TSLexer {
 public:
  TokenReader(const TSLanguage& language, ParseTables& tables, std::string_view text);
  ~TokenReader();
  TokenReader(const TokenReader&) = delete;
  TokenReader& operator=(const TokenReader&) = delete;

  // The token behind the byte; nothing where the text holds none of the language's.
  std::optional<Token> read(std::uint32_t at, TSStateId state, ScannerState before);
  bool same(ScannerState a, ScannerState b) const;
  // So far, those that were read more than once included.
  std::size_t characters_read() const { return characters_read_; }

 private:
  static constexpr std::uint32_t kOpen = ~std::uint32_t{0};

  static void on_advance(TSLexer* lexer, bool skip);
  static void on_mark_end(TSLexer* lexer);
  static std::uint32_t on_get_column(TSLexer* lexer);
  static bool on_is_at_start(const TSLexer* lexer);
  static bool on_eof(const TSLexer* lexer);
  static void on_log(const TSLexer* lexer, const char* format, ...);

  std::string_view bytes(ScannerState state) const {
    return {states_.data() + state.begin, state.size};
  }
  void start(std::uint32_t at);
  void finish();
  void decode();
  void decode_wide();
  bool may_scan(std::uint32_t at, TSLexMode mode) const;
  bool scan(std::uint32_t at, TSLexMode mode, ScannerState before);
  ScannerState scanner_state(ScannerState before);
  bool lex(std::uint32_t at, std::uint16_t lex_state);
  Token word(Token token, TSStateId state);

  const TSLanguage& language_;
  ParseTables& tables_;
  std::string_view text_;
  std::size_t characters_read_ = 0;
  std::uint32_t position_ = 0;
  std::uint32_t width_ = 0;  // bytes of the character at the position
  std::uint32_t token_begin_ = 0;
  std::uint32_t token_end_ = kOpen;
  std::vector<char> states_;
  ScannerState loaded_;
  bool is_loaded_ = false;
  void* scanner_ = nullptr;
};

}  // namespace bench::diagnose
