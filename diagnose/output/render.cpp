#include "diagnose/output/render.hpp"

namespace bench::diagnose {
namespace {

constexpr Format kFormats[] = {
    {"text", render_text},     {"json", render_json},         {"sarif", render_sarif},
    {"github", render_github}, {"markdown", render_markdown}, {"junit", render_junit},
    {"gitlab", render_gitlab},
};

}  // namespace

const Format* find_format(std::string_view name) {
  for (const Format& format : kFormats)
    if (format.name == name) return &format;
  return nullptr;
}

std::vector<std::string> format_names() {
  std::vector<std::string> names;
  for (const Format& format : kFormats) names.emplace_back(format.name);
  return names;
}

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c == '\t') {
      out += ' ';
    } else if (c < 0x20 || c == 0x7f) {
      out += '?';
    } else if (c == 0xC2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xA0) {
      out += '?';  // C1 controls: U+0080 to U+009F
      ++i;
    } else {
      out += text[i];
    }
  }
  return out;
}

std::string notice_line(const Notice& notice) {
  const std::string line = notice.line > 0 ? ":" + std::to_string(notice.line) : "";
  return printable(notice.file) + line + ": " + printable(notice.text);
}

std::string summary_line(const Finding& finding) {
  return printable(finding.file) + ":" + std::to_string(finding.line) + ":" +
         std::to_string(finding.column) + ": " + std::string(name_of(finding.severity)) + " " +
         finding.rule + " " + printable(finding.message);
}

}  // namespace bench::diagnose
