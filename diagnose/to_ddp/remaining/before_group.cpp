#include "diagnose/to_ddp/remaining/before_group.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace bench::diagnose {
namespace {

constexpr std::string_view kRank = "dist.get_rank() == 0";
constexpr std::string_view kRankOfLauncher = "int(os.environ.get(\"RANK\", 0)) == 0";
// Calls that advice names, and that raise where there is no group yet.
constexpr std::string_view kCalls[] = {kRank, "dist.barrier()", "dist.broadcast_object_list"};

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

std::vector<std::string> calls_of_group(const std::string& text) {
  std::vector<std::string> out;
  for (const std::string_view call : kCalls)
    if (text.find(call) != std::string::npos) out.emplace_back(call.substr(0, call.find(" == ")));
  return out;
}

std::string joined_by_and(const std::vector<std::string>& parts) {
  std::string out;
  for (std::size_t i = 0; i < parts.size(); ++i)
    out += (i == 0 ? "" : i + 1 == parts.size() ? " and " : ", ") + parts[i];
  return out;
}

// The text for a place that is not surely below the join. Who is to wait at a barrier alone, as
// behind an evaluation, stands above the join only where that is sure.
std::string asking_environment(const Program& program, std::string text, Ref place) {
  const std::vector<std::string> calls = calls_of_group(text);
  const bool only_waits = calls.size() == 1 && calls.front() == "dist.barrier()";
  replace_all(text, kRank, kRankOfLauncher);
  const auto joins = program.calls(Api::init_process_group);
  if (joins.empty()) return text;
  const Ref join = joins.front().ref();
  const bool is_above = program.runs_before(place, join);
  if (only_waits && !is_above) return text;
  text += is_above ? " The process group is joined later ("
                   : " The process group may be joined later (";
  return text + place_of(join) + "), and above it " + joined_by_and(calls) +
         (calls.size() > 1 ? " raise." : " raises.");
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
  if (calls_of_group(told.text).empty()) return {std::move(told)};
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
