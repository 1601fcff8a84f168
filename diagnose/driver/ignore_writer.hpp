// Writes comments that silence rules behind lines of a file, each where the reading of comments
// accepts it and where it changes nothing else.
#pragma once

#include "diagnose/driver/ignore_comments.hpp"
#include "diagnose/driver/shell_lines.hpp"
#include "diagnose/driver/source_files.hpp"
#include "diagnose/driver/source_text.hpp"
#include "diagnose/syntax/tree.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace bench::diagnose {

// Rules by the line on which their comment is to stand.
using IgnoresByLine = std::map<std::uint32_t, std::set<std::string>>;

class IgnoreWriter {
 public:
  IgnoreWriter(const SourceFile& file, std::string bytes);

  // Why no comment can be written into the file at all; empty where one can.
  std::string why_not() const;
  // The line behind which a comment on `line` stands; nothing where there is none.
  std::optional<std::uint32_t> line_for(std::uint32_t line) const;
  // The bytes of the file with these comments. A comment of ours that is there takes the rules in.
  std::string with(const IgnoresByLine& ignores) const;
  // These comments stand as comments, and leave the file what it is.
  bool is_sound(const IgnoresByLine& ignores) const;

 private:
  struct Line {
    std::size_t begin = 0;
    std::size_t end = 0;  // where what ends the line begins
  };
  struct Insertion {
    std::size_t begin = 0;
    std::size_t end = 0;  // blanks that it replaces
    std::string text;
  };

  std::string_view text_of(std::uint32_t line) const;
  std::optional<std::uint32_t> line_in_shell(std::uint32_t line) const;
  Insertion insertion(std::uint32_t line, const std::set<std::string>& rules) const;

  FileType type_;
  std::string path_;
  std::string bytes_;
  SourceText source_;
  std::vector<Line> lines_;
  std::optional<SyntaxTree> tree_;  // of a script
  std::optional<CommentLines> comment_lines_;
  std::vector<ShellLineEnd> shell_ends_;
};

}  // namespace bench::diagnose
