// Every rule's page is its test: the cases under "Fires" and "Stays silent" run through the same
// code as `bench diagnose`. With BENCH_UPDATE_GOLDEN=1 the finding blocks are rewritten.
#include "diagnose/driver/diagnose.hpp"
#include "diagnose/output/render.hpp"
#include "scenarios/pitfalls/laboratory/laboratory.hpp"
#include "scenarios/pitfalls/page.hpp"
#include "scenarios/pitfalls/registry.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

namespace bench::pitfalls {
namespace {

// Fewer cases than this do not show where a rule begins and where it ends.
constexpr std::ptrdiff_t kLeastCases = 3;

std::string lowered(std::string_view text, char dash) {
  std::string out(text);
  for (char& c : out) c = c == '-' ? dash : static_cast<char>(std::tolower(c));
  return out;
}

std::string stem_of(const Rule& rule) {
  return lowered(rule.id, '-') + "_" + lowered(rule.name, '_');
}

std::string page_path(const Rule& rule) {
  return std::string(BENCH_PITFALL_PAGES) + "/" + stem_of(rule) + ".md";
}

std::string read(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

diagnose::DiagnoseOptions options_of(const Rule& rule, const PageCase& each) {
  diagnose::DiagnoseOptions options;
  options.selection.select.emplace_back(rule.id);
  if (!each.launch.empty()) options.launch = each.launch;
  if (each.gpus > 0) options.gpus = each.gpus;
  return options;
}

std::string outcome_of(const Rule& rule, const PageCase& each) {
  std::string out;
  for (const Finding& finding :
       diagnose::diagnose_texts(each.files, each.script, options_of(rule, each)))
    out += finding.file + ":" + std::to_string(finding.line) + ":" +
           std::to_string(finding.column) + ": " + std::string(name_of(finding.severity)) + ", " +
           std::string(name_of(finding.confidence)) + ": " + finding.message + "\n";
  return out;
}

// Rewrites the finding blocks of a page in place, in order.
void update_page(const Rule& rule, const std::vector<PageCase>& cases) {
  std::istringstream in(read(page_path(rule)));
  std::string out;
  std::string line;
  std::size_t next = 0;
  bool in_block = false;
  while (std::getline(in, line)) {
    if (in_block && line != "```") continue;
    in_block = false;
    out += line + "\n";
    if (line == "```finding" && next < cases.size()) {
      out += outcome_of(rule, cases[next++]);
      in_block = true;
    }
  }
  std::ofstream(page_path(rule)) << out;
}

class RulePage : public testing::TestWithParam<Rule> {};

TEST_P(RulePage, CasesGiveTheFindingsTheyShow) {
  const Rule& rule = GetParam();
  const std::vector<PageCase> cases = cases_of(read(page_path(rule)));
  const bool update = std::getenv("BENCH_UPDATE_GOLDEN") != nullptr;
  for (const PageCase& each : cases) {
    const std::string outcome = outcome_of(rule, each);
    // Independent of the exact text, so that rewriting cannot hide a change of verdict.
    EXPECT_EQ(each.fires, !outcome.empty()) << page_path(rule) << ": " << each.title << "\n"
                                            << outcome;
    if (!update) EXPECT_EQ(each.expected, outcome) << page_path(rule) << ": " << each.title;
  }
  if (update) update_page(rule, cases);
}

TEST_P(RulePage, FindingsSayWhatToDoAndNameTrialsThatThereAre) {
  const Rule& rule = GetParam();
  const auto trials = all_trials();
  for (const PageCase& each : cases_of(read(page_path(rule))))
    for (const Finding& finding :
         diagnose::diagnose_texts(each.files, each.script, options_of(rule, each))) {
      EXPECT_FALSE(finding.help.empty()) << page_path(rule) << ": " << each.title;
      if (finding.trial.empty() || finding.trial == diagnose::kNoTrial) continue;
      EXPECT_TRUE(std::any_of(trials.begin(), trials.end(),
                              [&](const Trial& trial) {
                                return trial.rule == rule.name && trial.form == finding.trial;
                              }))
          << finding.trial << ": " << page_path(rule) << ": " << each.title;
    }
}

TEST_P(RulePage, HasTheHeadingsAndEnoughCases) {
  const Rule& rule = GetParam();
  const std::string page = read(page_path(rule));
  ASSERT_FALSE(page.empty()) << "no page " << page_path(rule);
  EXPECT_EQ(page.substr(0, page.find('\n')),
            "# " + std::string(rule.id) + " " + std::string(rule.name));
  std::size_t at = 0;
  for (const std::string_view heading : kPageHeadings) {
    if (rule.check == nullptr && (heading == "Fires" || heading == "Stays silent")) continue;
    const std::size_t found = page.find("\n## " + std::string(heading) + "\n", at);
    ASSERT_NE(found, std::string::npos) << page_path(rule) << ": no heading '" << heading << "'";
    at = found;
    if (heading != "Fires" && heading != "Stays silent")
      EXPECT_FALSE(section(rule, heading).empty()) << page_path(rule) << ": empty " << heading;
  }
  if (rule.check == nullptr) return;
  const std::vector<PageCase> cases = cases_of(page);
  const auto firing =
      std::count_if(cases.begin(), cases.end(), [](const auto& c) { return c.fires; });
  EXPECT_GE(firing, kLeastCases) << page_path(rule);
  EXPECT_GE(static_cast<std::ptrdiff_t>(cases.size()) - firing, kLeastCases) << page_path(rule);
}

INSTANTIATE_TEST_SUITE_P(Pitfalls, RulePage,
                         testing::ValuesIn(all_rules().begin(), all_rules().end()),
                         [](const auto& info) { return std::string(info.param.id); });

TEST(Registry, IdsAreSortedAndNamesDiffer) {
  std::set<std::string_view> names;
  std::string_view last_family;
  int last_number = 0;
  const std::vector<std::string_view> order{"DP", "DDP", "LAU", "LIT", "ACC", "HVD"};
  std::ptrdiff_t last_place = 0;
  for (const Rule& rule : all_rules()) {
    const std::size_t digits = rule.id.find_first_of("0123456789");
    const std::string_view family = rule.id.substr(0, digits);
    const int number = std::atoi(std::string(rule.id.substr(digits)).c_str());
    const auto place = std::find(order.begin(), order.end(), family) - order.begin();
    EXPECT_LT(place, static_cast<std::ptrdiff_t>(order.size())) << rule.id;
    EXPECT_GE(place, last_place) << rule.id;
    if (family == last_family) EXPECT_GT(number, last_number) << rule.id;
    EXPECT_TRUE(names.insert(rule.name).second) << rule.name;
    last_family = family;
    last_number = number;
    last_place = place;
  }
}

TEST(Registry, FindsRulesByIdAndName) {
  for (const Rule& rule : all_rules()) {
    EXPECT_EQ(find_rule(rule.id), &rule);
    EXPECT_EQ(find_rule(rule.name), &rule);
  }
  EXPECT_EQ(find_rule("no-such-rule"), nullptr);
}

}  // namespace
}  // namespace bench::pitfalls
