// JUnit's XML, as test reports of CI systems read it: a test suite for each file, a test case for
// each finding. Notes are skipped cases, since they fail no run; a file that could not be checked
// is an error.
#include "diagnose/output/render.hpp"

#include <algorithm>
#include <filesystem>
#include <map>

namespace bench::diagnose {
namespace {

constexpr std::string_view kPackage = "bench.diagnose";

// The bytes of the UTF-8 character at the beginning that XML 1.0 allows; 0 where there is none.
std::size_t character_length(std::string_view text) {
  const auto byte = [&](std::size_t at) {
    return at < text.size() ? static_cast<unsigned char>(text[at]) : 0U;
  };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xC0U) != 0x80U) return 0;
  const unsigned second = byte(1);
  const bool is_overlong = (first == 0xE0 && second < 0xA0) || (first == 0xF0 && second < 0x90);
  const bool is_surrogate = first == 0xED && second > 0x9F;
  const bool is_too_high = first == 0xF4 && second > 0x8F;
  const bool is_no_character =
      first == 0xEF && second == 0xBF && byte(2) >= 0xBE;  // U+FFFE, U+FFFF
  return is_overlong || is_surrogate || is_too_high || is_no_character ? 0 : length;
}

// Text for elements and attributes in double quotes.
std::string xml(std::string_view raw) {
  constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
  const std::string text = printable(raw);
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = character_length(std::string_view(text).substr(at));
    if (length == 0) {
      out += kReplacement;
      ++at;
      continue;
    }
    switch (text[at]) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += text.substr(at, length);
    }
    at += length;
  }
  return out;
}

std::string attribute(std::string_view name, std::string_view value) {
  return " " + std::string(name) + "=\"" + xml(value) + "\"";
}

std::string attribute(std::string_view name, std::size_t value) {
  return attribute(name, std::to_string(value));
}

struct Suite {
  std::size_t tests = 0;
  std::size_t failures = 0;
  std::size_t errors = 0;
  std::size_t skipped = 0;
  std::string cases;

  std::string counts() const {
    return attribute("tests", tests) + attribute("failures", failures) +
           attribute("errors", errors) + attribute("skipped", skipped);
  }
};

// "src/train" of src/train.py.
std::string class_of(const std::string& file) {
  return std::filesystem::path(file).replace_extension().string();
}

void add(Suite& suite, const Finding& finding) {
  const bool is_note = finding.severity == Severity::info;
  ++suite.tests;
  ++(is_note ? suite.skipped : suite.failures);
  const std::string text = "line " + std::to_string(finding.line) + ", col " +
                           std::to_string(finding.column) + ", " + finding.message +
                           (finding.help.empty() ? "" : ". " + finding.help);
  suite.cases += "    <testcase" + attribute("name", std::string(kPackage) + "." + finding.rule) +
                 attribute("classname", class_of(finding.file)) + attribute("file", finding.file) +
                 attribute("line", finding.line) + attribute("column", finding.column) + ">\n";
  suite.cases += is_note ? "      <skipped" : "      <failure";
  suite.cases += attribute("message", finding.message);
  if (!is_note) suite.cases += attribute("type", name_of(finding.severity));
  suite.cases +=
      ">" + xml(text) + (is_note ? "</skipped>\n" : "</failure>\n") + "    </testcase>\n";
}

void add(Suite& suite, const Notice& notice) {
  ++suite.tests;
  ++suite.errors;
  suite.cases += "    <testcase" + attribute("name", std::string(kPackage) + ".unchecked") +
                 attribute("classname", class_of(notice.file)) + attribute("file", notice.file) +
                 ">\n      <error" + attribute("message", notice.text) +
                 attribute("type", "error") + "/>\n    </testcase>\n";
}

}  // namespace

std::string render_junit(const std::vector<Finding>& findings, const RenderContext& context) {
  std::map<std::string, Suite> suites;
  for (const Finding& finding : findings) add(suites[finding.file], finding);
  for (const Notice& notice : context.notices)
    if (notice.unchecked) add(suites[notice.file], notice);
  // Readers take a report without cases for a broken one.
  if (suites.empty())
    suites["bench diagnose"] = {1, 0, 0, 0,
                                "    <testcase" + attribute("name", "no pitfalls found") +
                                    attribute("classname", "bench diagnose") + "/>\n"};
  Suite all;
  std::string out;
  for (const auto& [file, suite] : suites) {
    all.tests += suite.tests;
    all.failures += suite.failures;
    all.errors += suite.errors;
    all.skipped += suite.skipped;
    out += "  <testsuite" + attribute("name", file) + suite.counts() +
           attribute("package", kPackage) + ">\n" + suite.cases + "  </testsuite>\n";
  }
  return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites" +
         attribute("name", "bench diagnose") + all.counts() + ">\n" + out + "</testsuites>\n";
}

}  // namespace bench::diagnose
