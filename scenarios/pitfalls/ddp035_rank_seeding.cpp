#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/facts.hpp"

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::RankTest;

void check_rank_seeding(const Program& program, Report& report) {
  if (!facts::is_distributed(program) || program.framework_distributes()) return;
  bool common = false;
  bool differs = false;
  for (const Api api : {Api::manual_seed})
    for (const CallRef& seed : program.calls(api))
      (program.mentions_rank(seed.positional(0)) ? differs : common) = true;
  for (const std::string_view name : {"seed_everything", "set_seed", "seed", "fix_seed",
                                      "setup_seed", "init_seeds", "set_random_seed", "seed_all"})
    for (const CallRef& seed : program.calls_named(name)) {
      const Ref value = seed.positional(0);
      (value && program.mentions_rank(value) ? differs : common) = true;
    }
  const auto flag = [&](const CallRef& split, std::string_view argument) {
    if (split.keyword(argument) || (common && !differs) ||
        program.guarded_by_rank(split.ref()) != RankTest::none)
      return;
    Finding& finding =
        report.at(split.ref(), Confidence::likely,
                  differs ? "the split is drawn from a seed that differs between ranks: what one "
                            "rank trains on another validates on"
                          : "the split is random and no seed is set: ranks draw different splits, "
                            "and what one trains on another validates on");
    finding.severity = Severity::warning;
    finding.help =
        "Pass generator=torch.Generator().manual_seed(0) (random_state=0 for train_test_split).";
  };
  for (const CallRef& split : program.calls(Api::random_split)) flag(split, "generator");
  for (const CallRef& split : program.calls(Api::train_test_split)) flag(split, "random_state");
}

}  // namespace bench::pitfalls
