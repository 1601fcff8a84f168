#include "diagnose/output/render.hpp"
#include "diagnose/output/terminal_cells.hpp"

#include <algorithm>

namespace bench::diagnose {
namespace {

constexpr std::size_t kExcerptColumns = 120;

struct Palette {
  std::string_view bold, red, yellow, blue, dim, reset;
};
constexpr Palette kColors{"\x1b[1m", "\x1b[31m", "\x1b[33m", "\x1b[34m", "\x1b[2m", "\x1b[0m"};
constexpr Palette kPlain{};

std::string_view color_of(Severity severity, const Palette& palette) {
  switch (severity) {
    case Severity::error:
      return palette.red;
    case Severity::warning:
      return palette.yellow;
    case Severity::info:
      return palette.blue;
  }
  return {};
}

bool begins_character(char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }

std::size_t columns_of(std::string_view line) {
  return static_cast<std::size_t>(std::count_if(line.begin(), line.end(), begins_character));
}

// Cuts between characters, never within one.
void cut_to_columns(std::string& line, std::size_t most) {
  std::size_t columns = 0;
  for (std::size_t at = 0; at < line.size(); ++at)
    if (begins_character(line[at]) && ++columns > most) return line.resize(at);
}

// Takes the beginning of a long line away where the finding would not be seen otherwise; the number
// of columns that went.
std::size_t begin_at(std::string& line, std::size_t start) {
  constexpr std::size_t kBefore = 20;  // columns shown to the left of the finding
  constexpr std::string_view kCut = "...";
  if (start + kBefore < kExcerptColumns || start >= columns_of(line)) return 0;
  const std::size_t away = start - kBefore;
  std::size_t at = 0;
  for (std::size_t columns = 0; at < line.size(); ++at)
    if (begins_character(line[at]) && columns++ == away) break;
  line = std::string(kCut) + line.substr(at);
  return away - kCut.size();
}

void add_excerpt(std::string& out, const Finding& finding, const Palette& palette) {
  std::string line = printable(finding.excerpt);
  if (line.find_first_not_of(' ') == std::string::npos) return;
  const std::string number = std::to_string(finding.line);
  const std::string gutter(number.size() + 1, ' ');
  const std::size_t away = begin_at(line, finding.column - 1);
  const std::size_t start = finding.column - 1 - away;
  cut_to_columns(line, kExcerptColumns);
  const std::size_t columns = columns_of(line);
  const std::size_t end =
      finding.end_line == finding.line ? finding.end_column - 1 - away : columns;
  out += gutter + "|\n" + number + " | " + line + "\n" + gutter + "| ";
  if (start < columns) {
    const std::size_t shown = std::min(end, columns);
    out += std::string(cells_of(line, 0, start), ' ');
    out += color_of(finding.severity, palette);
    out += std::string(std::max<std::size_t>(cells_of(line, start, shown), 1), '^');
    out += palette.reset;
  }
  out += "\n";
}

// Text in a cell of a table, with nothing that Markdown or HTML would read.
std::string cell(std::string_view text) {
  std::string out;
  for (const char c : printable(text)) {
    if (std::string_view("\\`*_[]<>|&").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

// Between more backticks than the text has in a row; in a table a pipe is escaped even there.
std::string code_span(std::string_view text) {
  std::string body;
  std::size_t longest = 0;
  std::size_t row = 0;
  for (const char c : printable(text)) {
    row = c == '`' ? row + 1 : 0;
    longest = std::max(longest, row);
    if (c == '|') body += '\\';
    body += c;
  }
  const std::string fence(longest + 1, '`');
  const std::string gap = longest > 0 ? " " : "";
  return fence + gap + body + gap + fence;
}

std::string count(std::size_t n, std::string_view noun) {
  return std::to_string(n) + " " + std::string(noun) + (n == 1 ? "" : "s");
}

struct Checked {
  std::size_t files;     // that rules have seen
  std::string left_out;  // "; 2 files could not be checked", or empty
};

Checked checked_of(const RenderContext& context) {
  const auto unchecked = static_cast<std::size_t>(
      std::count_if(context.notices.begin(), context.notices.end(),
                    [](const Notice& notice) { return notice.unchecked; }));
  return {context.files - std::min(unchecked, context.files),
          unchecked > 0 ? "; " + count(unchecked, "file") + " could not be checked" : ""};
}

// ". Cost, predicted ...", where it is known.
std::string cost_of(const Finding& finding) {
  for (const auto& [key, value] : finding.evidence)
    if (key == "cost") return ". Cost, " + value;
  return {};
}

}  // namespace

std::string text_summary(const std::vector<Finding>& findings, const RenderContext& context) {
  std::size_t counts[3] = {};
  std::size_t fixable = 0;
  for (const Finding& finding : findings) {
    ++counts[static_cast<std::size_t>(finding.severity)];
    if (finding.fix) ++fixable;
  }
  const Checked checked = checked_of(context);
  if (findings.empty())
    return "no pitfalls found in " + count(checked.files, "file") + checked.left_out + "\n";
  std::string out = count(counts[2], "error") + ", " + count(counts[1], "warning") + ", " +
                    std::to_string(counts[0]) + " info in " + count(context.files, "file");
  out += checked.left_out;
  if (fixable > 0) out += "; --fix can apply " + std::to_string(fixable);
  return out + "\n";
}

std::string render_text(const std::vector<Finding>& findings, const RenderContext& context) {
  const Palette& palette = context.color ? kColors : kPlain;
  std::string out;
  for (const Finding& finding : findings) {
    out += palette.bold;
    out += printable(finding.file) + ":" + std::to_string(finding.line) + ":" +
           std::to_string(finding.column) + ":";
    out += palette.reset;
    out += " ";
    out += color_of(finding.severity, palette);
    out += name_of(finding.severity);
    out += palette.reset;
    out += " " + finding.rule + " " + printable(finding.message) + " [" + finding.name + ", " +
           std::string(name_of(finding.confidence)) + "]\n";
    add_excerpt(out, finding, palette);
    if (!finding.help.empty()) out += "  = help: " + printable(finding.help) + "\n";
    for (const auto& [key, value] : finding.evidence) {
      if (key == "place") out += "  = in " + printable(value) + "\n";
      if (key == "cost") out += "  = cost: " + printable(value) + "\n";
      if (key == "cost_not_predicted") out += "  = cost: not predicted: " + printable(value) + "\n";
    }
    if (finding.fix) out += "  = fix: " + finding.fix->title + " (--fix applies it)\n";
    out += "\n";
  }
  return out + text_summary(findings, context);
}

std::string render_markdown(const std::vector<Finding>& findings, const RenderContext& context) {
  std::string notices;
  for (const Notice& notice : context.notices)
    notices += "\n" +
               code_span(notice.file +
                         (notice.line > 0 ? ":" + std::to_string(notice.line) : std::string())) +
               ": " + cell(notice.text) + "\n";
  const Checked checked = checked_of(context);
  if (findings.empty())
    return "No pitfalls found in " + count(checked.files, "file") + checked.left_out + ".\n" +
           notices;
  std::string out = "| Where | Severity | Rule | What | Fix |\n| --- | --- | --- | --- | --- |\n";
  for (const Finding& finding : findings)
    out += "| " + code_span(finding.file + ":" + std::to_string(finding.line)) + " | " +
           std::string(name_of(finding.severity)) + " | " + finding.rule + " " + finding.name +
           " | " + cell(finding.message) + cell(cost_of(finding)) + " | " + cell(finding.help) +
           " |\n";
  return out + notices;
}

std::string render_github(const std::vector<Finding>& findings, const RenderContext& context) {
  // The workflow command format: properties escape more than the message does.
  const auto escape = [](std::string_view text, bool property) {
    std::string out;
    for (const char c : text) {
      switch (c) {
        case '%':
          out += "%25";
          break;
        case '\r':
          out += "%0D";
          break;
        case '\n':
          out += "%0A";
          break;
        case ':':
          out += property ? "%3A" : ":";
          break;
        case ',':
          out += property ? "%2C" : ",";
          break;
        default:
          out += c;
      }
    }
    return out;
  };
  std::string out;
  for (const Finding& finding : findings) {
    const char* level = finding.severity == Severity::error     ? "error"
                        : finding.severity == Severity::warning ? "warning"
                                                                : "notice";
    // A launch line that was given on the command line stands in no file.
    const std::string place = finding.file == kLaunchOption
                                  ? ""
                                  : "file=" + escape(printable(finding.file), true) +
                                        ",line=" + std::to_string(finding.line) +
                                        ",col=" + std::to_string(finding.column) +
                                        ",endLine=" + std::to_string(finding.end_line) + ",";
    out += std::string("::") + level + " " + place +
           "title=" + escape(finding.rule + " " + finding.name, true) +
           "::" + escape(printable(finding.message + cost_of(finding)), false) +
           (finding.help.empty() ? "" : "%0A" + escape(printable(finding.help), false)) + "\n";
  }
  for (const Notice& notice : context.notices)
    out += "::warning file=" + escape(printable(notice.file), true) +
           (notice.line > 0 ? ",line=" + std::to_string(notice.line) : "") +
           "::" + escape(printable(notice_line(notice)), false) + "\n";
  return out;
}

}  // namespace bench::diagnose
