// Rules that judge runs, from documents written by hand: each fires on the evidence it names and is
// silent on evidence that is near it.
#include "scenarios/pitfalls/laboratory.hpp"
#include "scenarios/pitfalls/page.hpp"
#include "scenarios/pitfalls/paired_loss.hpp"
#include "scenarios/pitfalls/registry.hpp"
#include "scenarios/pitfalls/run_evidence.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace bench::pitfalls {
namespace {

// The names of the rules that find something in a document.
std::set<std::string> found(const char* document) {
  std::set<std::string> names;
  for (const Finding& finding : judge_run(RunEvidence(Json::parse(document))))
    names.insert(finding.name);
  return names;
}

struct JudgeCase {
  const char* what;
  const char* document;
  std::set<std::string> rules;
};

class Judges : public testing::TestWithParam<JudgeCase> {};

TEST_P(Judges, FindWhatTheEvidenceShows) {
  EXPECT_EQ(found(GetParam().document), GetParam().rules) << GetParam().what;
}

const JudgeCase kCases[] = {
    {"no evidence", R"({"ranks":[{},{}]})", {}},
    {"the same order in every epoch",
     R"({"ranks":[{"shuffled":true,"epoch_orders":["a","a","a"]}]})",
     {"missing-set-epoch"}},
    {"orders differ", R"({"ranks":[{"shuffled":true,"epoch_orders":["a","b"]}]})", {}},
    {"no shuffling was asked for",
     R"({"ranks":[{"shuffled":false,"epoch_orders":["a","a"]}]})",
     {}},
    {"one epoch", R"({"ranks":[{"shuffled":true,"epoch_orders":["a"]}]})", {}},
    {"an idle GPU",
     R"({"gpus":4,"ranks":[{"batch":6,"shards":[2,2,2]}]})",
     {"batch-not-divisible-by-gpus"}},
    {"a smaller last shard",
     R"({"gpus":4,"ranks":[{"batch":7,"shards":[2,2,2,1]}]})",
     {"batch-not-divisible-by-gpus"}},
    {"equal shards", R"({"gpus":4,"ranks":[{"batch":8,"shards":[2,2,2,2]}]})", {}},
    {"a parameter without gradient",
     R"({"ranks":[{"error":"Expected to have finished reduction in the prior iteration before."}]})",
     {"unused-parameters"}},
    {"another error",
     R"({"ranks":[{"error":"Expected all tensors to be on the same device"}]})",
     {}},
    {"a rank waits for a batch that its peer does not have",
     R"({"ranks":[{"batches":4,"end":"ended"},{"batches":5,"end":"silent"}]})",
     {"uneven-batches-per-rank"}},
    {"uneven, and joined", R"({"ranks":[{"batches":4},{"batches":5}]})", {}},
};

INSTANTIATE_TEST_SUITE_P(Documents, Judges, testing::ValuesIn(kCases));

TEST(Laboratory, EveryTrialHasARuleThatJudgesAndAPageThatTells) {
  std::set<std::string> titles;
  for (const Trial& trial : all_trials()) {
    const Rule* rule = find_rule(trial.rule);
    ASSERT_NE(rule, nullptr) << trial.rule;
    EXPECT_NE(rule->judge, nullptr) << trial.rule << " has no judge";
    EXPECT_NE(section(*rule, "Measured here").find("bench --scenario pitfalls"), std::string::npos)
        << trial.rule << ": its page does not say how to reproduce it";
    EXPECT_TRUE(titles.insert(title_of(trial)).second) << title_of(trial);
    EXPECT_FALSE(trial.mistake.empty() || trial.fix.empty()) << title_of(trial);
  }
}

TEST(Laboratory, SelectsByIdAndNameAndRefusesTheRest) {
  EXPECT_EQ(select_trials({}).size(), all_trials().size());
  EXPECT_EQ(select_trials({"DDP018"}), select_trials({"missing-set-epoch"}));
  EXPECT_EQ(select_trials({"batch-not-divisible-by-gpus", "DDP001"}).size(),
            select_trials({"DP004"}).size() + select_trials({"DDP001"}).size());
  EXPECT_THROW(select_trials({"missing-set-epoc"}), std::exception);
}

// Worked by hand: differences 1, 2, 3 have mean 2 and deviation 1; t(0.975, 2) = 4.30265.
TEST(PairedLoss, IsStudentsIntervalOfTheDifferences) {
  const Json broken{10, 20, 30};
  const Json cured{11, 22, 33};
  const Interval interval = paired_loss(&broken, &cured);
  EXPECT_EQ(interval.seeds, 3U);
  EXPECT_DOUBLE_EQ(interval.mean, 2);
  EXPECT_NEAR(interval.high - interval.mean, 4.30265 / std::sqrt(3.0), 1e-5);
  const Json one{1};
  EXPECT_TRUE(std::isnan(paired_loss(&one, &one).mean));
}

}  // namespace
}  // namespace bench::pitfalls
