#include "diagnose/to_ddp/unfollowed.hpp"

#include "diagnose/to_ddp/trains.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace bench::diagnose {
namespace {

constexpr std::size_t kMostPlaces = 3;

// net = nn.DataParallel(net), neither in a comment nor the definition of a class.
bool calls_wrapper(std::string_view line) {
  constexpr std::string_view kWrapper = "DataParallel(";
  const std::size_t begin = line.find_first_not_of(" \t");
  if (begin == std::string_view::npos || line[begin] == '#') return false;
  line.remove_prefix(begin);
  const std::size_t at = line.find(kWrapper);
  return at != std::string_view::npos && !line.starts_with("class ") && !line.starts_with("def ") &&
         !line.substr(0, at).ends_with("Distributed");
}

// The quotes of the text over several lines that goes on behind the line; empty where none does.
std::string_view text_behind_line(std::string_view line, std::string_view open) {
  constexpr std::string_view kOpen[] = {"\"\"\"", "'''"};
  for (std::size_t at = 0; at < line.size();) {
    if (!open.empty()) {
      at = line.find(open, at);
      if (at == std::string_view::npos) return open;
      at += open.size();
      open = {};
      continue;
    }
    if (line[at] == '#') break;
    for (const std::string_view quotes : kOpen)
      if (line.substr(at).starts_with(quotes)) open = quotes;
    if (!open.empty())
      at += open.size();
    else if (line[at] == '"' || line[at] == '\'')
      at = std::min(line.find(line[at], at + 1), line.size() - 1) + 1;
    else
      ++at;
  }
  return open;
}

// In code: an example of a docstring calls nothing.
std::optional<std::uint32_t> line_of_wrapper(std::string_view text) {
  std::uint32_t number = 1;
  std::string_view open;
  for (std::size_t begin = 0; begin < text.size(); ++number) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    if (open.empty() && calls_wrapper(line)) return number;
    open = text_behind_line(line, open);
    begin = end + 1;
  }
  return std::nullopt;
}

// import_module("models." + name), eval(config.runner)(config), getattr(models, name)(args).
bool looks_up(const Program& program, const CallRef& call) {
  const std::string_view name = call.call->name;
  const auto is_fixed = [&](std::size_t index) {
    const Ref given = call.positional(index);
    return !given || program.string(given).has_value();
  };
  if (name == "import_module" || name == "__import__") return !is_fixed(0);
  if (name == "eval") return !call.receiver() && !is_fixed(0);
  if (name == "getattr")
    return !is_fixed(1) && call.positional(0).text() != "self" &&
           call.positional(0).text().find("arg") == std::string_view::npos;
  return name == "instantiate" || name == "init_obj" || (name == "globals" && !call.receiver());
}

// What finds a file or any text comes before what finds an attribute.
std::string place_of_lookup(const Program& program, const ReachedCode& reached) {
  CallRef found;
  for (const Module* module : program.modules())
    for (const Call& call : module->calls()) {
      const CallRef each{module, &call};
      const bool is_better = !found || (found.call->name == "getattr" && call.name != "getattr");
      if (is_better && reached.has(each) && looks_up(program, each)) found = each;
    }
  if (!found) return {};
  return found.module->path() + ":" +
         std::to_string(found.module->tree().line_of(found.call->node));
}

using Places = std::vector<std::pair<std::string, std::uint32_t>>;

// Those in files that the script imports first, and those of tests last.
Places wrappers_in_project(const Program& program) {
  Places out = program.where_in_project(line_of_wrapper);
  const auto is_imported = [&](const auto& place) {
    const auto& modules = program.modules();
    return std::any_of(modules.begin(), modules.end(), [&](const Module* module) {
      return std::string_view(place.first).ends_with(module->path());
    });
  };
  const auto is_of_test = [](const auto& place) {
    return place.first.substr(place.first.rfind('/') + 1).find("test") != std::string::npos;
  };
  std::stable_partition(out.begin(), out.end(),
                        [&](const auto& each) { return !is_of_test(each); });
  std::stable_partition(out.begin(), out.end(), is_imported);
  return out;
}

std::string listed(const Places& places) {
  std::string out;
  for (std::size_t i = 0; i < std::min(places.size(), kMostPlaces); ++i)
    out += (i == 0 ? "" : ", ") + places[i].first + ":" + std::to_string(places[i].second);
  return places.size() > kMostPlaces ? out + " ..." : out;
}

}  // namespace

bool looks_code_up(const Program& program, const ReachedCode& reached) {
  return !place_of_lookup(program, reached).empty();
}

std::string unfollowed_wrapper(const Program& program, const ReachedCode& reached) {
  const Places places = wrappers_in_project(program);
  if (places.empty() || surely_trains_nothing(program, reached)) return {};
  const std::string lookup = place_of_lookup(program, reached);
  const std::string by_hand =
      "wrap there in DistributedDataParallel by hand, join the process group above, and share out "
      "the loader of the training";
  if (lookup.empty())
    return "no DataParallel call that is seen to be reached from here; the project has one in " +
           listed(places) + ": give the script that comes by it; if it is this one, " + by_hand;
  return "no DataParallel call that is seen to be reached from here; the project has one in " +
         listed(places) + ", and " + lookup +
         " looks code up by a name that only a run knows: " + "where it leads there, " + by_hand;
}

}  // namespace bench::diagnose
