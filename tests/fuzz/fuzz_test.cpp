// The short run of the fuzzers: random bytes, and the scripts of the rule pages changed at random.
// Seeds are fixed, so a failure repeats; BENCH_FUZZ_ROUNDS makes it longer.
#include "scenarios/pitfalls/page.hpp"
#include "scenarios/pitfalls/registry.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "tests/fuzz/diagnose_input.hpp"
#include "tests/fuzz/mutate.hpp"

namespace bench::diagnose {
namespace {

std::size_t rounds(std::size_t usual) {
  const char* factor = std::getenv("BENCH_FUZZ_ROUNDS");
  return usual * (factor == nullptr ? 1 : static_cast<std::size_t>(std::atoi(factor)));
}

std::vector<std::string> scripts_of_pages() {
  std::vector<std::string> scripts;
  for (const pitfalls::Rule& rule : pitfalls::all_rules())
    for (const auto& each : pitfalls::cases_of(pitfalls::page_of(rule)))
      for (const auto& [name, text] : each.files)
        if (name.ends_with(".py")) scripts.push_back(text);
  return scripts;
}

TEST(Fuzz, RandomBytesAreSurvivedAsEveryKindOfFile) {
  Mutator mutator(1);
  for (std::size_t i = 0; i < rounds(200); ++i)
    EXPECT_NO_THROW(run_on_every_kind(mutator.bytes(400))) << "round " << i;
}

TEST(Fuzz, MutatedScriptsAreSurvived) {
  const std::vector<std::string> scripts = scripts_of_pages();
  ASSERT_GT(scripts.size(), 300U);
  Mutator mutator(2);
  std::size_t found = 0;
  for (std::size_t i = 0; i < rounds(2000); ++i) {
    const std::string& script = scripts[i % scripts.size()];
    const std::string text = mutator.mutate(script, scripts[(i * 7 + 3) % scripts.size()]);
    EXPECT_NO_THROW(found += run_as_script(text)) << "round " << i << "\n" << text;
  }
  // Mutants that no rule looks at would test nothing.
  EXPECT_GT(found, rounds(2000) / 8);
}

TEST(Fuzz, TwoScriptsInOneAreSurvived) {
  const std::vector<std::string> scripts = scripts_of_pages();
  for (std::size_t i = 0; i < rounds(200); ++i)
    EXPECT_NO_THROW(
        run_as_script(scripts[i % scripts.size()] + scripts[(i * 31 + 7) % scripts.size()]));
}

}  // namespace
}  // namespace bench::diagnose
