#include "diagnose/output/render.hpp"

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

void add_excerpt(std::string& out, const Finding& finding, const Palette& palette) {
  std::string line = printable(finding.excerpt);
  if (line.find_first_not_of(' ') == std::string::npos) return;
  if (line.size() > kExcerptColumns) line.resize(kExcerptColumns);
  const std::string number = std::to_string(finding.line);
  const std::string gutter(number.size() + 1, ' ');
  const std::size_t start = finding.column - 1;
  const std::size_t end = finding.end_line == finding.line ? finding.end_column - 1 : line.size();
  out += gutter + "|\n" + number + " | " + line + "\n" + gutter + "| ";
  if (start < line.size()) {
    const std::size_t width = std::max<std::size_t>(1, std::min(end, line.size()) - start);
    out += std::string(start, ' ');
    out += color_of(finding.severity, palette);
    out += std::string(width, '^');
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

// ". Cost, predicted ...", where it is known.
std::string cost_of(const Finding& finding) {
  for (const auto& [key, value] : finding.evidence)
    if (key == "cost") return ". Cost, " + value;
  return {};
}

}  // namespace

std::string render_text(const std::vector<Finding>& findings, const RenderContext& context) {
  const Palette& palette = context.color ? kColors : kPlain;
  std::string out;
  std::size_t counts[3] = {};
  std::size_t fixable = 0;
  for (const Finding& finding : findings) {
    ++counts[static_cast<std::size_t>(finding.severity)];
    if (finding.fix) ++fixable;
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
    for (const auto& [key, value] : finding.evidence)
      if (key == "cost") out += "  = cost: " + printable(value) + "\n";
    if (finding.fix) out += "  = fix: " + finding.fix->title + " (--fix applies it)\n";
    out += "\n";
  }
  const auto count = [](std::size_t n, std::string_view noun) {
    return std::to_string(n) + " " + std::string(noun) + (n == 1 ? "" : "s");
  };
  if (findings.empty()) return "no pitfalls found in " + count(context.files, "file") + "\n";
  out += count(counts[2], "error") + ", " + count(counts[1], "warning") + ", " +
         std::to_string(counts[0]) + " info in " + count(context.files, "file");
  if (fixable > 0) out += "; --fix can apply " + std::to_string(fixable);
  return out + "\n";
}

std::string render_markdown(const std::vector<Finding>& findings, const RenderContext& context) {
  if (findings.empty())
    return "No pitfalls found in " + std::to_string(context.files) + " files.\n";
  std::string out = "| Where | Severity | Rule | What | Fix |\n| --- | --- | --- | --- | --- |\n";
  for (const Finding& finding : findings)
    out += "| " + code_span(finding.file + ":" + std::to_string(finding.line)) + " | " +
           std::string(name_of(finding.severity)) + " | " + finding.rule + " " + finding.name +
           " | " + cell(finding.message) + cell(cost_of(finding)) + " | " + cell(finding.help) +
           " |\n";
  return out;
}

std::string render_github(const std::vector<Finding>& findings, const RenderContext&) {
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
    out += std::string("::") + level + " file=" + escape(printable(finding.file), true) +
           ",line=" + std::to_string(finding.line) + ",col=" + std::to_string(finding.column) +
           ",endLine=" + std::to_string(finding.end_line) +
           ",title=" + escape(finding.rule + " " + finding.name, true) +
           "::" + escape(printable(finding.message + cost_of(finding)), false) +
           (finding.help.empty() ? "" : "%0A" + escape(printable(finding.help), false)) + "\n";
  }
  return out;
}

}  // namespace bench::diagnose
