// Findings as text for people and as documents for machines. Renderers return bytes; text that
// comes from the user's files is stripped of terminal escapes first.
#pragma once

#include "diagnose/finding.hpp"
#include "diagnose/notice.hpp"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace bench::diagnose {

struct RenderContext {
  std::size_t files = 0;
  bool color = false;
  std::vector<Notice> notices;  // on files and lines, apart from findings
  // Of files their path from the root of their repository, where that is another.
  std::map<std::string, std::string> repository_paths = {};
  // What --launch starts, for formats in which all has to stand in some file.
  std::string launched = {};

  // The path of a file that is the same from whichever folder the program runs, as far as is known.
  const std::string& lasting_path(const std::string& file) const {
    const auto known = repository_paths.find(file);
    return known == repository_paths.end() ? file : known->second;
  }
};

std::string render_text(const std::vector<Finding>& findings, const RenderContext& context);
std::string render_json(const std::vector<Finding>& findings, const RenderContext& context);
std::string render_sarif(const std::vector<Finding>& findings, const RenderContext& context);
std::string render_github(const std::vector<Finding>& findings, const RenderContext& context);
std::string render_markdown(const std::vector<Finding>& findings, const RenderContext& context);
std::string render_junit(const std::vector<Finding>& findings, const RenderContext& context);
std::string render_gitlab(const std::vector<Finding>& findings, const RenderContext& context);

// How often each rule was broken, most first, as text.
std::string render_statistics(const std::vector<Finding>& findings, const RenderContext& context);

// The last line of the text: how many findings there are in how many files.
std::string text_summary(const std::vector<Finding>& findings, const RenderContext& context);

// "FILE: what", or "FILE:LINE: what": as it is printed to standard error.
std::string notice_line(const Notice& notice);

// One line without the excerpt: path:line:col: severity RULE message.
std::string summary_line(const Finding& finding);

// Replaces control characters, so that a file's text cannot drive the terminal.
std::string printable(std::string_view text);

struct Format {
  std::string_view name;
  std::string (*render)(const std::vector<Finding>&, const RenderContext&);
};
const Format* find_format(std::string_view name);
std::vector<std::string> format_names();

}  // namespace bench::diagnose
