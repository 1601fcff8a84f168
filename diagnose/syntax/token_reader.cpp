#include "diagnose/syntax/token_reader.hpp"

#include "diagnose/syntax/parse_memory.hpp"

#include <array>
#include <cstring>

namespace bench::diagnose {
namespace {

constexpr TSStateId kErrorState = 0;
constexpr std::int32_t kByteOrderMark = 0xFEFF;
constexpr std::int32_t kNoCharacter = -1;  // what is no UTF-8

bool is_tail(unsigned char byte) { return (byte & 0xC0U) == 0x80U; }

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

// Of what the grammar's scanner looks for: blanks, ends of lines, comments, quotes and the letters
// that may stand before them; and all that is no ASCII.
bool begins_scanned(char c) {
  static constexpr auto kAny = [] {
    std::array<bool, 256> out{};
    for (std::size_t c = 0; c < out.size(); ++c) out[c] = c < ' ' || c >= 0x7F;
    for (const char c : std::string_view(" #\\\"'`fFrRbBuU"))
      out[static_cast<unsigned char>(c)] = true;
    return out;
  }();
  return kAny[static_cast<unsigned char>(c)];
}

// A name or keyword of ASCII letters and digits, and the blanks before it; empty where something
// else comes, or a letter that it may go on with follows.
struct PlainWord {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
};

PlainWord plain_word(std::string_view text, std::uint32_t at) {
  while (at < text.size() && text[at] == ' ') ++at;
  std::uint32_t end = at;
  // Of all words the lexer itself reads but `except`, for the sake of `except*`.
  if (at == text.size() || !is_letter(text[at]) || text[at] == 'e') return {};
  while (end < text.size() && (is_letter(text[end]) || (text[end] >= '0' && text[end] <= '9')))
    ++end;
  const bool is_cut = end < text.size() && static_cast<unsigned char>(text[end]) >= 0x80;
  return is_cut ? PlainWord{} : PlainWord{at, end};
}

}  // namespace

TokenReader::TokenReader(const TSLanguage& language, ParseTables& tables, std::string_view text)
    : TSLexer{0, 0, on_advance, on_mark_end, on_get_column, on_is_at_start, on_eof, on_log},
      language_(language),
      tables_(tables),
      text_(text) {
  use_parse_memory();  // before the scanner takes any, which has tree-sitter's allocator
  scanner_ = language.external_scanner.create();
  decode();
}

TokenReader::~TokenReader() { language_.external_scanner.destroy(scanner_); }

void TokenReader::on_advance(TSLexer* lexer, bool skip) {
  auto& self = *static_cast<TokenReader*>(lexer);
  if (self.position_ >= self.text_.size()) return;
  self.position_ += self.width_;
  ++self.characters_read_;
  if (skip) self.token_begin_ = self.position_;
  self.decode();
}

void TokenReader::on_mark_end(TSLexer* lexer) {
  auto& self = *static_cast<TokenReader*>(lexer);
  self.token_end_ = self.position_;
}

std::uint32_t TokenReader::on_get_column(TSLexer* lexer) {
  const auto& self = *static_cast<TokenReader*>(lexer);
  std::uint32_t column = 0;
  for (std::uint32_t at = self.position_; at > 0 && self.text_[at - 1] != '\n'; --at)
    if (!is_tail(static_cast<unsigned char>(self.text_[at - 1]))) ++column;
  return column;
}

bool TokenReader::on_is_at_start(const TSLexer* lexer) {
  return static_cast<const TokenReader*>(lexer)->position_ == 0;
}

bool TokenReader::on_eof(const TSLexer* lexer) {
  const auto& self = *static_cast<const TokenReader*>(lexer);
  return self.position_ >= self.text_.size();
}

void TokenReader::on_log(const TSLexer*, const char*, ...) {}

inline void TokenReader::decode() {
  width_ = 1;
  if (position_ >= text_.size()) {
    lookahead = 0;
    return;
  }
  const auto first = static_cast<unsigned char>(text_[position_]);
  lookahead = first;
  if (first >= 0x80) decode_wide();
}

// UTF-8 without what Unicode forbids: overlong forms, surrogates, what lies above U+10FFFF.
void TokenReader::decode_wide() {
  const auto byte = [&](std::uint32_t at) {
    return position_ + at < text_.size() ? static_cast<unsigned char>(text_[position_ + at])
                                         : static_cast<unsigned char>(0);
  };
  const unsigned char first = byte(0);
  const std::uint32_t width = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  constexpr std::array<std::int32_t, 5> kLeast = {0, 0, 0x80, 0x800, 0x10000};
  std::int32_t character = first & (0xFF >> (width + 1));
  bool is_sound = first >= 0xC0 && first < 0xF8;
  for (std::uint32_t at = 1; at < width; ++at) {
    is_sound = is_sound && is_tail(byte(at));
    character = (character << 6) | (byte(at) & 0x3F);
  }
  is_sound = is_sound && character >= kLeast[width] && character <= 0x10FFFF &&
             (character < 0xD800 || character > 0xDFFF);
  lookahead = is_sound ? character : kNoCharacter;
  width_ = is_sound ? width : 1;
}

void TokenReader::start(std::uint32_t at) {
  if (position_ != at) {
    position_ = at;
    decode();
  }
  token_begin_ = at;
  token_end_ = kOpen;
  result_symbol = 0;
  if (at == 0 && lookahead == kByteOrderMark) on_advance(this, true);
}

void TokenReader::finish() {
  if (token_end_ == kOpen) token_end_ = position_;
  if (token_end_ < token_begin_) token_begin_ = token_end_;
}

bool TokenReader::same(ScannerState a, ScannerState b) const {
  return a.begin == b.begin ? a.size == b.size : bytes(a) == bytes(b);
}

// Outside of strings the scanner finds ends of lines, indentation, comments and where strings
// begin: nothing at a character that none of these begins with, which most tokens do.
bool TokenReader::may_scan(std::uint32_t at, TSLexMode mode) const {
  if (mode.external_lex_state == 0) return false;
  if (tables_.scans_strings(mode.external_lex_state)) return true;
  while (at < text_.size() && text_[at] == ' ') ++at;
  return at >= text_.size() || begins_scanned(text_[at]);
}

// A scan that finds nothing leaves the scanner as it was, so that it is loaded anew only after one
// that found something.
bool TokenReader::scan(std::uint32_t at, TSLexMode mode, ScannerState before) {
  start(at);
  const auto& external = language_.external_scanner;
  if (!is_loaded_ || !same(loaded_, before))
    external.deserialize(scanner_, before.size == 0 ? nullptr : states_.data() + before.begin,
                         before.size);
  loaded_ = before;
  const bool* valid =
      external.states + std::size_t{language_.external_token_count} * mode.external_lex_state;
  is_loaded_ = !external.scan(scanner_, this, valid);
  finish();
  return !is_loaded_;
}

ScannerState TokenReader::scanner_state(ScannerState before) {
  std::array<char, TREE_SITTER_SERIALIZATION_BUFFER_SIZE> buffer;
  const std::uint32_t size = language_.external_scanner.serialize(scanner_, buffer.data());
  if (bytes(before) == std::string_view(buffer.data(), size)) return before;
  const ScannerState after{static_cast<std::uint32_t>(states_.size()), size};
  states_.insert(states_.end(), buffer.data(), buffer.data() + size);
  return after;
}

// The lexer goes through a word letter by letter, each a call. Once it has read one as a name in a
// state, it does so with all plain ones.
bool TokenReader::lex(std::uint32_t at, std::uint16_t lex_state) {
  start(at);
  const PlainWord word = plain_word(text_, position_);
  if (word.begin == word.end) return language_.lex_fn(this, lex_state);
  char& reads_names = tables_.reads_names(lex_state, word.begin != position_);
  if (!reads_names) {
    const bool is_read = language_.lex_fn(this, lex_state);
    reads_names = is_read && result_symbol == language_.keyword_capture_token &&
                  token_begin_ == word.begin && token_end_ == word.end;
    return is_read;
  }
  characters_read_ += word.end - position_;
  token_begin_ = word.begin;
  token_end_ = position_ = word.end;
  decode();
  result_symbol = language_.keyword_capture_token;
  return true;
}

// A word may be a keyword, where one is expected.
Token TokenReader::word(Token token, TSStateId state) {
  const bool is_long = token.end - token.begin > 1;
  char unknown = 0;
  char& is_name =
      is_long ? tables_.begins_no_keyword(text_[token.begin], text_[token.begin + 1]) : unknown;
  if (is_name) return token;
  const std::size_t before = characters_read_;
  start(token.begin);
  token.is_keyword = language_.keyword_lex_fn(this, 0);
  is_name = !token.is_keyword && characters_read_ - before < 2;
  finish();
  if (token.is_keyword && token_end_ == token.end && tables_.at(state, result_symbol) != 0)
    token.symbol = result_symbol;
  return token;
}

std::optional<Token> TokenReader::read(std::uint32_t at, TSStateId state, ScannerState before) {
  // What is no token that the state expects is read once more as any token.
  for (const TSStateId reading : {state, kErrorState}) {
    const TSLexMode mode = language_.lex_modes[reading];
    if (mode.lex_state == static_cast<std::uint16_t>(-1)) return std::nullopt;
    Token token;
    token.state = state;
    if (may_scan(at, mode) && scan(at, mode, before)) {
      token.after = scanner_state(before);
      const bool is_idle = reading == kErrorState && token_end_ <= at && same(token.after, before);
      token.is_scanned = !is_idle;
    }
    if (!token.is_scanned) {
      if (!lex(at, mode.lex_state)) continue;
      finish();
    }
    token.begin = token_begin_;
    token.end = token_end_;
    token.symbol =
        token.is_scanned ? language_.external_scanner.symbol_map[result_symbol] : result_symbol;
    const bool is_word =
        !token.is_scanned && token.symbol != 0 && token.symbol == language_.keyword_capture_token;
    return is_word ? word(token, state) : token;
  }
  return std::nullopt;
}

}  // namespace bench::diagnose
