// The words of shell text: quotes, backslashes, comments, and substitutions kept whole. A quote may
// span lines where it begins a word or a value, so that an apostrophe in prose does not.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace bench::diagnose {

struct LaunchWord {
  std::string text;
  std::uint32_t line = 1;  // within the file, or 1 for --launch
  std::uint32_t column = 1;
  bool literal = true;        // false when it holds $VARIABLES or substitutions
  bool quoted = false;        // some of it stood in quotes: no operator, and never split
  bool ends_quoted = false;   // its last character did: `;` or `)` there ends nothing
  bool of_branch = false;     // from a variable that a finished `if` above set: not in every run
  bool is_explained = false;  // a comment beside the variable, or above it, says why it is set
};

class ShellLexer {
 public:
  enum class Token : std::uint8_t { word, line_end, batch_options, end };

  explicit ShellLexer(std::string_view text, std::uint32_t first_line = 1)
      : text_(text), line_(first_line) {}

  Token next();
  // Of the token read last; of #SBATCH the rest of the line.
  const LaunchWord& word() const { return word_; }
  // The comment passed last, and its line; none yet where that is 0.
  std::string_view comment() const { return comment_; }
  std::uint32_t comment_line() const { return comment_line_; }

 private:
  bool skip_blanks_and_comments();
  void read_word();
  void open_quote();
  bool take_escaped();
  void take_substitution();
  bool continues_line() const;
  void advance(std::size_t to);

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t line_start_ = 0;
  std::uint32_t line_;
  char quote_ = 0;
  bool quote_spans_lines_ = false;
  std::string_view comment_;
  std::uint32_t comment_line_ = 0;
  LaunchWord word_;
};

// The words of one command, its operators among them.
std::vector<LaunchWord> split_words(std::string_view line, std::uint32_t line_number = 1);

// Behind what a command substitution takes: $(dirname "$0") or `hostname`; one character else.
std::size_t end_of_substitution(std::string_view line, std::size_t at);

// What an unquoted $FLAGS becomes: the value's words, each at the place of `word`.
std::vector<LaunchWord> split_value(const LaunchWord& word);

// NAME=value
bool is_assignment(std::string_view word);

// # works around a deadlock: the comment says why a switch is set, and not that it is for
// debugging.
bool tells_why(std::string_view comment);

}  // namespace bench::diagnose
