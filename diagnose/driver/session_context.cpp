// What a file stands in, as the rules ask for it: launch lines, versions, settings of the project.
#include "diagnose/driver/directory.hpp"
#include "diagnose/driver/project_requirements.hpp"
#include "diagnose/driver/session.hpp"
#include "diagnose/model/script_kind.hpp"

#include <algorithm>
#include <filesystem>

namespace bench::diagnose {

ProgramContext Session::context_of(const SourceFile& file) {
  ProgramContext context;
  context.top = file.top;
  context.gpus = options_.gpus;
  context.list = list_;
  if (given_launch_) context.launches.push_back(*given_launch_);
  if (!given_launch_) context.launches = launches_.lines_of(file);
  context.newest = versions_of(file, context.launches);
  context.shipped = [this, file](const std::string& key) { return configured(file, key); };
  context.any_in_project = asker_of(file);
  context.where_in_project = [this, file](const auto& line_of) { return where(file, line_of); };
  context.follows_look_ups = options_.follows_look_ups;
  context.scripts_above = [this, file] { return scripts_above(file); };
  return context;
}

// Questions about the project of a file. Of a file that was given alone it is all below the mark of
// a root, or the tree that its imports may lead to.
std::function<bool(const std::string&, const TextTest&)> Session::asker_of(const SourceFile& file) {
  return [this, file](const std::string& question, const TextTest& accepts) {
    return scripts_.any(project_root_of(file), question, accepts);
  };
}

namespace {

// A script without a guard: it reads its command line or starts its work at its own level, and does
// more than to prepare what others import.
bool works_at_its_own_level(const Module& module) {
  const auto& calls = module.calls();
  return std::any_of(calls.begin(), calls.end(), [&](const Call& call) {
    return module.scope_of(call.node) == 0 &&
           (call.name == "parse_args" || call.name == "main" || call.name == "run" ||
            call.name == "fit" || call.name.starts_with("train"));
  });
}

}  // namespace

// Those that run, of the files that import this one, as a user types them; with a guard first.
std::vector<std::string> Session::scripts_above(const SourceFile& file) {
  namespace fs = std::filesystem;
  std::error_code error;
  const auto above = above_given(file);
  const std::string path =
      above.empty() ? file.path : fs::absolute(file.path, error).lexically_normal().string();
  std::vector<std::string> out;
  std::vector<std::string> unguarded;
  for (const std::string& each : scripts_.importers(project_root_of(file), path)) {
    const auto module = cache_.load(each);
    if (!module || is_test(*module)) continue;
    if (!module->has_main_guard() && !works_at_its_own_level(*module)) continue;
    auto& list = module->has_main_guard() ? out : unguarded;
    list.push_back(above.empty() ? each : fs::proximate(each, error).string());
  }
  out.insert(out.end(), unguarded.begin(), unguarded.end());
  return out;
}

std::vector<std::pair<std::string, std::uint32_t>> Session::where(
    const SourceFile& file, const ProjectScripts::LineOf& line_of) {
  std::error_code error;
  const auto above = above_given(file);
  auto out = scripts_.where(project_root_of(file), line_of);
  if (!above.empty())
    for (auto& [path, line] : out) path = std::filesystem::proximate(path, error).string();
  return out;
}

// A script that was given alone may lie below its project's root.
std::vector<ShippedValue> Session::configured(const SourceFile& file, const std::string& key) {
  const auto above = above_given(file);
  if (above.empty()) return configs_.values_of(root_of(file), file.path, key);
  std::error_code error;
  const auto path = std::filesystem::absolute(file.path, error).lexically_normal();
  return configs_.values_of(above.back(), path.string(), key);
}

std::string Session::root_of(const SourceFile& file) {
  return configs_.root_among(directories_above(file.path, file.top), file.top);
}

std::string Session::project_root_of(const SourceFile& file) {
  const auto above = above_given(file);
  return above.empty() ? root_of(file) : above.back();
}

std::vector<std::string> Session::above_given(const SourceFile& file) {
  return file.is_named ? launches_.directories_above_given(file.path) : std::vector<std::string>{};
}

NewestVersions Session::versions_of(const SourceFile& file,
                                    const std::vector<LaunchLine>& launches) {
  NewestVersions out = requirements_of(file);
  const NewestVersions entered = environments_of(launches, cache_);
  out.python = std::min(out.python, entered.python);
  fill_open(out, entered);
  if (out.lightning == kAnyVersion)
    out.lightning = pages_.lightning_for(directories_above(file.path, file.top), file.top);
  return out;
}

// The nearest directory that bounds a package counts.
NewestVersions Session::requirements_of(const SourceFile& file) {
  NewestVersions out;
  const auto narrow = [&](const std::string& directory, const std::string& top) {
    const std::lock_guard lock(mutex_);
    auto known = requirements_.find(directory);
    if (known == requirements_.end())
      known =
          requirements_.emplace(directory, requirements_in(directory, top, cache_, list_)).first;
    fill_open(out, known->second);
  };
  for (const std::string& directory : directories_above(file.path, file.top))
    narrow(directory, file.top);
  if (!file.is_named) return out;
  const auto above = launches_.directories_above_given(file.path);
  for (const std::string& directory : above) narrow(directory, above.back());
  return out;
}

}  // namespace bench::diagnose
