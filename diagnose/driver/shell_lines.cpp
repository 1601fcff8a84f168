#include "diagnose/driver/shell_lines.hpp"

#include <algorithm>
#include <deque>
#include <string>

namespace bench::diagnose {
namespace {

bool is_blank(char c) { return c == ' ' || c == '\t'; }

struct HereDocument {
  std::string end;
  bool may_be_indented = false;  // <<-
};

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  std::vector<ShellLineEnd> ends() {
    while (at_ < text_.size()) step();
    const bool is_inside = is_open() || in('$') || ends_in_document_;
    end_line(is_inside ? ShellLineEnd::in_quotes : ShellLineEnd::plain);
    return std::move(ends_);
  }

 private:
  char next(std::size_t ahead = 1) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  // Quotes and ( that are open, from the outside.
  bool in(char c) const { return !open_.empty() && open_.back() == c; }
  bool is_open() const { return in('\'') || in('"'); }
  void end_line(ShellLineEnd end) { ends_.push_back(end); }

  void step() {
    const char c = text_[at_];
    if (c == '\n')
      newline();
    else if (in('\'') || in('$'))
      in_single(c);
    else if (c == '\\')
      escape();
    else if (in('"'))
      in_double(c);
    else
      plain(c);
    ++at_;
  }

  void newline() {
    end_line(is_open() || in('$') ? ShellLineEnd::in_quotes : ShellLineEnd::plain);
    if (!waiting_.empty()) skip_documents();
  }

  // 'text', and $'text' with backslashes.
  void in_single(char c) {
    if (c == '\\' && in('$') && next() != '\n')
      ++at_;
    else if (c == '\'')
      open_.pop_back();
  }

  void in_double(char c) {
    if (c == '"')
      open_.pop_back();
    else if (c == '$' && next() == '(')
      open_parenthesis();
  }

  // At the end of a line, \r\n included, the next one is joined.
  void escape() {
    const std::size_t newline = at_ + (next() == '\r' ? 2 : 1);
    if (newline >= text_.size()) {
      end_line(ShellLineEnd::goes_on);
      at_ = text_.size();
    } else if (text_[newline] == '\n') {
      end_line(in('"') ? ShellLineEnd::in_quotes : ShellLineEnd::goes_on);
      at_ = newline;
    } else {
      ++at_;
    }
  }

  void open_parenthesis() {
    open_ += '(';
    ++at_;
  }

  void plain(char c) {
    if (c == '$' && next() == '\'') {
      open_ += '$';
      ++at_;
    } else if (c == '$' && next() == '(') {
      open_parenthesis();
    } else if (c == '\'' || c == '"' || c == '(') {
      open_ += c;
    } else if (c == ')' && in('(')) {
      open_.pop_back();
    } else if (c == '#' && begins_word()) {
      at_ = std::min(text_.find('\n', at_), text_.size()) - 1;  // a comment
    } else if (c == '<' && next() == '<') {
      here_document();
    }
  }

  bool begins_word() const {
    constexpr std::string_view kBefore = " \t\n;|&()";
    return at_ == 0 || kBefore.find(text_[at_ - 1]) != std::string_view::npos;
  }

  // <<END, <<-END, <<'END'; not <<< and no shift of numbers.
  void here_document() {
    at_ += 2;
    if (next(0) == '<' || open_.ends_with("((")) return;
    HereDocument document;
    document.may_be_indented = next(0) == '-';
    if (document.may_be_indented) ++at_;
    while (is_blank(next(0))) ++at_;
    constexpr std::string_view kBehind = " \t\r\n;|&()<>";
    while (at_ < text_.size() && kBehind.find(text_[at_]) == std::string_view::npos) {
      if (std::string_view("'\"\\").find(text_[at_]) == std::string_view::npos)
        document.end += text_[at_];
      ++at_;
    }
    --at_;
    const bool is_number = document.end.find_first_not_of("0123456789") == std::string::npos;
    if (!is_number) waiting_.push_back(std::move(document));
  }

  // From a newline to the one that ends the last of the documents.
  void skip_documents() {
    while (!waiting_.empty() && at_ + 1 < text_.size()) {
      const std::size_t begin = at_ + 1;
      const std::size_t end = std::min(text_.find('\n', begin), text_.size());
      std::string_view line = text_.substr(begin, end - begin);
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (waiting_.front().may_be_indented)
        line.remove_prefix(std::min(line.find_first_not_of('\t'), line.size()));
      if (line == waiting_.front().end) waiting_.pop_front();
      at_ = end;
      if (end < text_.size()) end_line(ShellLineEnd::in_quotes);
      ends_in_document_ = end == text_.size();
    }
    if (at_ >= text_.size()) at_ = text_.size() - 1;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::string open_;
  std::deque<HereDocument> waiting_;
  bool ends_in_document_ = false;
  std::vector<ShellLineEnd> ends_;
};

}  // namespace

std::vector<ShellLineEnd> shell_line_ends(std::string_view text) { return Reader(text).ends(); }

}  // namespace bench::diagnose
