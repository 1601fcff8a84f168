#include "diagnose/launch/shell_words.hpp"

#include "diagnose/model/role_names.hpp"

#include <algorithm>
#include <cctype>

namespace bench::diagnose {
namespace {

constexpr std::size_t kLongestQuote = 8000;         // over lines; more is a quote nobody closed
constexpr std::size_t kLongestSubstitution = 1000;  // the same of $(...)
constexpr std::string_view kBatch = "#SBATCH";

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

std::size_t closing_quote(std::string_view text, std::size_t at) {
  const char quote = text[at];
  std::size_t i = at + 1;
  while (i < text.size() && i - at < kLongestQuote) {
    const char c = text[i];
    if (c == quote) return i;
    if (quote == '"' && c == '\\')
      i += 2;
    else if (quote == '"' && (c == '$' || c == '`'))
      i = end_of_substitution(text, i);
    else
      ++i;
  }
  return std::string_view::npos;
}

// hang in "may hang.", and not in "change".
bool says_word(std::string_view text, std::string_view word) {
  const auto joins = [&](std::size_t at) {
    const auto c = static_cast<unsigned char>(at < text.size() ? text[at] : ' ');
    return std::isalnum(c) || c == '_';
  };
  for (std::size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1))
    if (!(at > 0 && joins(at - 1)) && !joins(at + word.size())) return true;
  return false;
}

}  // namespace

std::size_t end_of_substitution(std::string_view line, std::size_t at) {
  if (line[at] == '`') {
    const std::size_t close = line.find_first_of("`\n", at + 1);
    return close == std::string_view::npos || line[close] == '\n' ? at + 1 : close + 1;
  }
  if (at + 1 >= line.size() || line[at + 1] != '(') return at + 1;
  int open = 0;
  const std::size_t end = std::min(line.size(), at + kLongestSubstitution);
  for (std::size_t i = at + 1; i < end; ++i) {
    if (line[i] == '(') ++open;
    if (line[i] == ')' && --open == 0) return i + 1;
  }
  return at + 1;
}

void ShellLexer::advance(std::size_t to) {
  for (; at_ < to; ++at_)
    if (text_[at_] == '\n') {
      ++line_;
      line_start_ = at_ + 1;
    }
}

// A backslash before the line's end, also of a file with CRLF.
bool ShellLexer::continues_line() const {
  return text_[at_] == '\\' &&
         (text_.substr(at_ + 1, 1) == "\n" || text_.substr(at_ + 1, 2) == "\r\n");
}

// False where a line ends or #SBATCH begins one.
bool ShellLexer::skip_blanks_and_comments() {
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (is_blank(c)) {
      ++at_;
    } else if (continues_line()) {
      advance(text_.find('\n', at_) + 1);
    } else if (c == '#') {
      if (at_ == line_start_ && text_.substr(at_).starts_with(kBatch)) return false;
      const std::size_t end = std::min(text_.find('\n', at_), text_.size());
      std::string_view comment = text_.substr(at_, end - at_);
      if (comment.ends_with('\r')) comment.remove_suffix(1);
      comment_ = comment;
      comment_line_ = line_;
      // A flag that is commented out within a command: what the writer means goes on.
      advance(comment.ends_with('\\') && end < text_.size() ? end + 1 : end);
    } else {
      return c != '\n';
    }
  }
  return false;
}

ShellLexer::Token ShellLexer::next() {
  const bool begins_word = skip_blanks_and_comments();
  word_ = {};
  word_.line = line_;
  word_.column = static_cast<std::uint32_t>(at_ - line_start_) + 1;
  if (at_ >= text_.size()) return Token::end;
  if (begins_word) {
    read_word();
    return Token::word;
  }
  if (text_[at_] == '\n') {
    advance(at_ + 1);
    return Token::line_end;
  }
  const std::size_t end = std::min(text_.find('\n', at_), text_.size());
  word_.text = text_.substr(at_ + kBatch.size(), end - at_ - kBatch.size());
  if (word_.text.ends_with('\r')) word_.text.pop_back();
  advance(end);
  return Token::batch_options;
}

void ShellLexer::open_quote() {
  quote_ = text_[at_];
  const bool begins_value = word_.text.empty() || word_.text.ends_with('=');
  quote_spans_lines_ = begins_value && closing_quote(text_, at_) != std::string_view::npos;
  word_.quoted = true;
  ++at_;
}

// \x as a shell takes it. Line ends within quotes stay, for who reads the text as a command.
bool ShellLexer::take_escaped() {
  if (text_[at_] != '\\' || quote_ == '\'' || at_ + 1 >= text_.size()) return false;
  if (continues_line()) {
    const std::size_t behind = text_.find('\n', at_) + 1;
    if (quote_ != 0) word_.text += "\\\n";
    advance(behind);
    return true;
  }
  if (text_[at_ + 1] == '\n') return false;
  word_.text += text_[at_ + 1];
  at_ += 2;
  return true;
}

void ShellLexer::take_substitution() {
  word_.literal = false;
  const std::size_t end = end_of_substitution(text_, at_);
  word_.text += text_.substr(at_, end - at_);
  advance(end);
}

void ShellLexer::read_word() {
  quote_ = 0;
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (quote_ == 0 && (is_blank(c) || c == '\n')) return;
    word_.ends_quoted = quote_ != 0;
    if (quote_ != 0 && c == '\n' && !quote_spans_lines_) return;
    if (quote_ == 0 && continues_line()) return;
    if (quote_ != 0 && !quote_spans_lines_ && continues_line()) return;
    if (quote_ != 0 && c == quote_) {
      quote_ = 0;
      ++at_;
    } else if (quote_ == 0 && (c == '"' || c == '\'')) {
      open_quote();
    } else if (take_escaped()) {
      continue;
    } else if ((c == '$' || c == '`') && quote_ != '\'') {
      take_substitution();
    } else {
      word_.text += c;
      advance(at_ + 1);
    }
  }
}

std::vector<LaunchWord> split_words(std::string_view line, std::uint32_t line_number) {
  std::vector<LaunchWord> words;
  ShellLexer lexer(line, line_number);
  for (auto token = lexer.next(); token != ShellLexer::Token::end; token = lexer.next())
    if (token == ShellLexer::Token::word) words.push_back(lexer.word());
  return words;
}

std::vector<LaunchWord> split_value(const LaunchWord& word) {
  std::vector<LaunchWord> out;
  const std::string_view text = word.text;
  LaunchWord piece = word;
  piece.text.clear();
  const auto close = [&] {
    if (piece.text.empty()) return;
    piece.literal = piece.text.find_first_of("$`") == std::string::npos;
    out.push_back(piece);
    piece.text.clear();
  };
  for (std::size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (is_blank(c) || c == '\n' || text.substr(i, 2) == "\\\n") {
      close();
      i += c == '\\' ? 2 : 1;
      continue;
    }
    const std::size_t end = c == '$' || c == '`' ? end_of_substitution(text, i) : i + 1;
    piece.text += text.substr(i, end - i);
    i = end;
  }
  close();
  return out;
}

bool is_assignment(std::string_view word) {
  const std::size_t equals = word.find('=');
  if (equals == 0 || equals == std::string_view::npos) return false;
  return std::all_of(word.begin(), word.begin() + static_cast<std::ptrdiff_t>(equals),
                     [](unsigned char c) { return std::isalnum(c) || c == '_'; });
}

bool tells_why(std::string_view comment) {
  const std::string plain = lowered(comment);
  const auto says = [&](std::string_view word) { return plain.find(word) != std::string::npos; };
  for (const std::string_view search : {"debug", "调试", "排查", "暴露"})
    if (says(search)) return false;
  for (const std::string_view reason :
       {"avoid",       "avoids",       "prevent",  "prevents",  "workaround",
        "work around", "works around", "deadlock", "deadlocks", "dead lock",
        "hang",        "hangs",        "crash",    "crashes",   "fails",
        "stability",   "otherwise",    "because",  "no nvlink", "no p2p"})
    if (says_word(plain, reason)) return true;
  // To avoid, to prevent.
  return says("避免") || says("防止");
}

}  // namespace bench::diagnose
