#include "scenarios/pitfalls/ranks/tested_calls.hpp"

#include "scenarios/pitfalls/reach/certainty.hpp"

#include <algorithm>
#include <cstddef>

namespace bench::pitfalls {

namespace {

constexpr int kMaxCallers = 4;
constexpr std::size_t kMostEntries = 2;  // with more of them the function itself is what to change

void add_tested(const Program& program, Ref place, int depth, std::vector<Ref>& out) {
  if (program.rank_guard(place)) {
    if (std::find(out.begin(), out.end(), place) == out.end()) out.push_back(place);
    return;
  }
  const auto function = program.enclosing_function(place);
  if (!function || depth == kMaxCallers) return;
  for (const CallRef& site : program.call_sites(function))
    if (out.size() <= kMostEntries &&
        program.guarded_by_rank(site.ref()) != diagnose::RankTest::none)
      add_tested(program, site.ref(), depth + 1, out);
}

}  // namespace

std::vector<Ref> tested_calls(const Program& program, Ref place) {
  std::vector<Ref> out;
  add_tested(program, place, 0, out);
  // An option between the two that leaves the place out: the doubt is about the place.
  const auto reach = facts::certainty_of_reach(program, place);
  const bool is_doubtful = std::any_of(out.begin(), out.end(), [&](Ref entry) {
    return facts::certainty_of_reach(program, entry) != reach;
  });
  if (out.empty() || out.size() > kMostEntries || is_doubtful) return {place};
  return out;
}

}  // namespace bench::pitfalls
