// How much of what is wrong in whole scripts `bench diagnose` finds, and how much of what it says
// is right. The two corpora, recall/ and the later recall2/, were written from the catalogue of
// pitfalls, without a look at the rules: a comment `# expect: DDP017` stands on each line that a
// finding should name. A finding is right when its rule is expected within two lines; notes are
// left out.
#include "diagnose/driver/diagnose.hpp"
#include "scenarios/pitfalls/registry.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <set>
#include <sstream>

namespace bench::diagnose {
namespace {

namespace fs = std::filesystem;

constexpr double kLeastRecall = 0.90;
constexpr double kLeastPrecision = 0.95;
constexpr int kNear = 2;                   // lines between the mark and the finding
constexpr std::size_t kLeastScripts = 60;  // fewer are no sample of how people write
constexpr std::string_view kMark = "# expect: ";

struct Expected {
  std::string file;
  int line = 0;
  std::string rule;

  bool is_met_by(const Finding& finding) const {
    return finding.rule == rule && finding.file == file &&
           std::abs(static_cast<int>(finding.line) - line) <= kNear;
  }
};

std::vector<fs::path> programs_of(const fs::path& corpus) {
  std::vector<fs::path> out;
  for (const auto& entry : fs::directory_iterator(corpus)) out.push_back(entry.path());
  std::sort(out.begin(), out.end());
  return out;
}

void read_marks(const fs::path& path, std::vector<Expected>& out) {
  std::ifstream file(path);
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    const std::size_t mark = line.find(kMark);
    if (mark == std::string::npos) continue;
    std::istringstream words(line.substr(mark + kMark.size()));
    for (std::string rule; words >> rule && std::isupper(static_cast<unsigned char>(rule[0]));)
      out.push_back({path.string(), number, rule.substr(0, rule.find_first_of("\\\""))});
  }
}

std::vector<Expected> marks_of(const fs::path& program) {
  std::vector<Expected> out;
  if (fs::is_directory(program))
    for (const auto& entry : fs::recursive_directory_iterator(program))
      if (entry.is_regular_file()) read_marks(entry.path(), out);
  if (fs::is_regular_file(program)) read_marks(program, out);
  return out;
}

std::vector<Finding> findings_of(const fs::path& program) {
  DiagnoseOptions options;
  options.paths = {program.string()};
  options.threads = 1;
  std::vector<Finding> found = diagnose(options).findings;
  std::erase_if(found, [](const Finding& each) { return each.severity == Severity::info; });
  return found;
}

std::string place(std::string_view file, std::uint64_t line, std::string_view rule) {
  return "  " + fs::path(file).lexically_relative(BENCH_RULE_TESTS).string() + ":" +
         std::to_string(line) + " " + std::string(rule) + "\n";
}

class RecallCorpus : public testing::TestWithParam<std::string_view> {
 protected:
  static fs::path corpus() { return fs::path(BENCH_RULE_TESTS) / GetParam(); }
};

TEST_P(RecallCorpus, FindsWhatIsSeededAndLittleElse) {
  std::size_t expected = 0;
  std::size_t met = 0;
  std::size_t found = 0;
  std::size_t right = 0;
  std::string missed;
  std::string wrong;
  for (const fs::path& program : programs_of(corpus())) {
    const std::vector<Expected> marks = marks_of(program);
    const std::vector<Finding> findings = findings_of(program);
    for (const Expected& mark : marks) {
      const bool is_met = std::any_of(findings.begin(), findings.end(),
                                      [&](const Finding& each) { return mark.is_met_by(each); });
      met += is_met ? 1 : 0;
      if (!is_met) missed += place(mark.file, static_cast<std::uint64_t>(mark.line), mark.rule);
    }
    for (const Finding& finding : findings) {
      const bool is_right = std::any_of(marks.begin(), marks.end(), [&](const Expected& mark) {
        return mark.is_met_by(finding);
      });
      right += is_right ? 1 : 0;
      if (!is_right) wrong += place(finding.file, finding.line, finding.rule);
    }
    expected += marks.size();
    found += findings.size();
  }
  ASSERT_GT(expected, 0U);
  ASSERT_GT(found, 0U);
  std::cout << "recall " << met << " of " << expected << ", precision " << right << " of " << found
            << "\nmissed:\n"
            << missed << "not expected:\n"
            << wrong;
  EXPECT_GE(static_cast<double>(met) / static_cast<double>(expected), kLeastRecall) << missed;
  EXPECT_GE(static_cast<double>(right) / static_cast<double>(found), kLeastPrecision) << wrong;
}

TEST_P(RecallCorpus, HoldsManyScriptsAndKnownRules) {
  std::set<std::string_view> ids;
  for (const pitfalls::Rule& rule : pitfalls::all_rules()) ids.insert(rule.id);
  const std::vector<fs::path> programs = programs_of(corpus());
  EXPECT_GE(programs.size(), kLeastScripts);
  for (const fs::path& program : programs)
    for (const Expected& mark : marks_of(program))
      EXPECT_TRUE(ids.contains(mark.rule)) << mark.file << ":" << mark.line << " " << mark.rule;
}

INSTANTIATE_TEST_SUITE_P(, RecallCorpus, testing::Values("recall", "recall2"));

}  // namespace
}  // namespace bench::diagnose
