#include "diagnose/to_ddp/remaining/before_group.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace bench::diagnose {
namespace {

constexpr std::string_view kRank = "dist.get_rank() == 0";
constexpr std::string_view kRankOfLauncher = "int(os.environ.get(\"RANK\", 0)) == 0";
constexpr std::string_view kBarrier = "dist.barrier()";

// The place itself, or a call that leads to it, stands below the call that joins.
bool is_below(const Program& program, Ref join, Ref place, std::set<const Function*>& seen) {
  const FunctionRef function = program.enclosing_function(place);
  if (function == program.enclosing_function(join) && place.module == join.module)
    return join.node < place.node;
  if (!function) return false;
  if (!seen.insert(function.function).second) return true;  // another way decides
  const auto& sites = program.call_sites(function);
  return !sites.empty() && std::all_of(sites.begin(), sites.end(), [&](const CallRef& site) {
    return is_below(program, join, site.ref(), seen);
  });
}

// The last of the calls that lead to the join, in the function that `place` stands in or is called
// from: setup() of a helper that joins.
bool is_below_helper(const Program& program, Ref join, Ref place) {
  for (FunctionRef helper = program.enclosing_function(join); helper;) {
    const auto& sites = program.call_sites(helper);
    if (sites.size() != 1) return false;
    std::set<const Function*> seen;
    if (is_below(program, sites.front().ref(), place, seen)) return true;
    const FunctionRef next = program.enclosing_function(sites.front().ref());
    if (next == helper) return false;
    helper = next;
  }
  return false;
}

void replace_all(std::string& text, std::string_view what, std::string_view with) {
  for (std::size_t at = text.find(what); at != std::string::npos;
       at = text.find(what, at + with.size()))
    text.replace(at, what.size(), with);
}

// The text for a place that is not surely below the join.
std::string asking_environment(const Program& program, std::string text, Ref place) {
  const bool waits = text.find(kBarrier) != std::string::npos;
  replace_all(text, kRank, kRankOfLauncher);
  const auto joins = program.calls(Api::init_process_group);
  if (joins.empty()) return text;
  const Ref join = joins.front().ref();
  text += program.runs_before(place, join) ? " The process group is joined later ("
                                           : " The process group may be joined later (";
  text += place_of(join) + "), and above it dist.get_rank()";
  return text + (waits ? " and dist.barrier() raise." : " raises.");
}

}  // namespace

bool is_surely_below(const Program& program, Ref above, Ref place) {
  std::set<const Function*> seen;
  return is_below(program, above, place, seen);
}

bool is_joined_above(const Program& program, Ref place) {
  const auto joins = program.calls(Api::init_process_group);
  return std::any_of(joins.begin(), joins.end(), [&](const CallRef& join) {
    return is_surely_below(program, join.ref(), place) ||
           is_below_helper(program, join.ref(), place);
  });
}

std::vector<Told> told_by_group(const Program& program, Told told) {
  if (told.text.find(kRank) == std::string::npos) return {std::move(told)};
  std::vector<Told> out;
  for (const Ref place : told.places) {
    std::string text =
        is_joined_above(program, place) ? told.text : asking_environment(program, told.text, place);
    const auto same =
        std::find_if(out.begin(), out.end(), [&](const Told& each) { return each.text == text; });
    if (same != out.end())
      same->places.push_back(place);
    else
      out.push_back({told.harm, {place}, std::move(text)});
  }
  return out;
}

}  // namespace bench::diagnose
