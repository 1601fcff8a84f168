// The documents of bench diagnose, byte for byte, for findings made by hand.
#include "diagnose/output/render.hpp"

#include "tests/golden/golden.hpp"

namespace bench::diagnose {
namespace {

Finding finding(const std::string& rule, const std::string& name, Severity severity,
                const std::string& file, std::uint32_t line) {
  Finding out;
  out.rule = rule;
  out.name = name;
  out.severity = severity;
  out.file = file;
  out.line = out.end_line = line;
  out.column = 5;
  out.end_column = 9;
  out.message = "what <is> wrong & \"why\"";
  out.help = "Do this instead.";
  out.excerpt = "x = f(y)";
  return out;
}

std::vector<Finding> findings() {
  return {finding("DP017", "hard-coded-device-list", Severity::warning, "src/a.py", 3),
          finding("DP017", "hard-coded-device-list", Severity::warning, "src/a.py", 7),
          finding("DDP014", "rank-conditional-collective", Severity::error, "src/b.py", 9),
          finding("DP001", "dataparallel-multi-gpu", Severity::info, "src/b.py", 12)};
}

RenderContext context() {
  RenderContext out{3, false};
  out.notices = {{"src/a.py", "ignore[DDP018] silences nothing", false, 5},
                 {"src/cut.ipynb", "is no notebook: not JSON: not checked", true}};
  out.repository_paths = {{"src/a.py", "project/src/a.py"}};
  return out;
}

TEST(DiagnoseDocuments, AreAsBefore) {
  for (const std::string format : {"json", "junit", "gitlab", "github", "markdown"})
    expect_golden("diagnose." + format, find_format(format)->render(findings(), context()));
  expect_golden("diagnose.statistics", render_statistics(findings(), context()));
}

TEST(DiagnoseDocuments, OfNothingAreAsBefore) {
  for (const std::string format : {"junit", "gitlab"})
    expect_golden("diagnose_clean." + format, find_format(format)->render({}, {3, false}));
}

}  // namespace
}  // namespace bench::diagnose
