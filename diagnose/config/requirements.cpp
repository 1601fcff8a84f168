#include "diagnose/config/requirements.hpp"

#include "diagnose/config/environment_names.hpp"
#include "diagnose/config/version_text.hpp"

#include <algorithm>
#include <cctype>
#include <optional>
#include <string>

namespace bench::diagnose {
namespace {

bool in_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.';
}

// The newest version that one constraint allows; nothing for >= and its kin.
std::optional<int> upper_bound(std::string_view op, const Version& version, bool has_star) {
  const int end_of_major = version.number / kMinors * kMinors + kMinors - 1;
  if (version.parts == 1 && (has_star || op == "=")) return end_of_major;  // =1, ==2.*
  if (op == "==" || op == "===" || op == "=" || op == "<=") return version.number;
  if (op == "<") return version.has_patch ? version.number : version.number - 1;
  if (op == "~=") return version.parts > 2 ? version.number : end_of_major;
  if (op == "~") return version.parts > 1 ? version.number : end_of_major;
  if (op == "^") return end_of_major;
  return std::nullopt;
}

// The oldest version that one constraint allows; nothing for < and its kin.
std::optional<int> lower_bound(std::string_view op, const Version& version) {
  const bool is_upper = op.starts_with('<') || op == "!=";
  return is_upper ? std::nullopt : std::optional(version.number);
}

struct Allowed {
  std::optional<int> newest;
  std::optional<int> least;
};

// What stands behind a package's name: ==1.4.5, =1.7=py3.7, >=1.3,<1.9, = "^1.5".
Allowed allowed_by(std::string_view text) {
  skip(text, " \t");
  if (text.starts_with('[')) text.remove_prefix(std::min(text.find(']') + 1, text.size()));
  skip(text, " \t\"'(");
  Allowed out;
  while (true) {
    const std::string_view op = text.substr(0, text.find_first_not_of("=<>!~^"));
    text.remove_prefix(op.size());
    skip(text, " \t");
    if (op == "=" && (text.starts_with('"') || text.starts_with('\''))) {  // TOML
      text.remove_prefix(1);
      const bool bare = !text.empty() && std::isdigit(static_cast<unsigned char>(text[0])) != 0;
      if (!bare) continue;
    }
    const auto version = op.empty() ? std::nullopt : take_version(text);
    if (!version) return out;
    if (const auto bound = upper_bound(op, *version, text.starts_with('*')))
      out.newest = std::min(out.newest.value_or(*bound), *bound);
    if (const auto bound = lower_bound(op, *version))
      out.least = std::max(out.least.value_or(*bound), *bound);
    text.remove_prefix(
        std::min(text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789*+."), text.size()));
    skip(text, " \t");
    if (!text.starts_with(',')) return out;
    skip(text, ", \t");
  }
}

// The tag of a package that is fetched from its repository: @
// git+https://host/fork.git@v0.8.5_fixes
std::optional<int> fetched_version(std::string_view text) {
  skip(text, " \t");
  if (!text.starts_with('@')) return std::nullopt;
  const std::size_t tag = text.rfind('@');
  if (tag == 0) return std::nullopt;
  text.remove_prefix(tag + 1);
  skip(text, "v");
  const auto version = take_version(text);
  return version && version->parts > 1 ? std::optional(version->number) : std::nullopt;
}

// git+https://github.com/someone/pytorch-lightning.git without a tag: a fork, of whatever version
// it was taken from. The framework's own owners are none.
bool is_fork(std::string_view line, std::size_t at, std::size_t end) {
  const std::string_view rest = line.substr(end);
  if (line.find("git+") >= at || line[at - 1] != '/' || rest.find('@') != std::string_view::npos ||
      !(rest.empty() || rest.starts_with(".git") || rest.starts_with(' ') || rest.starts_with('#')))
    return false;
  for (const std::string_view owner : {"/Lightning-AI/", "/PyTorchLightning/", "/lightning-ai/",
                                       "/pytorchlightning/", "/williamFalcon/"})
    if (line.substr(0, at).ends_with(owner)) return false;
  return true;
}

bool is_install(std::string_view line) {
  const auto has = [&](std::string_view word) { return line.find(word) != std::string_view::npos; };
  const bool conda = has("conda") || has("mamba");
  return (has("install") && (has("pip") || conda || has("uv "))) || (has("create") && conda);
}

// Python is bounded by an entry of its own ("- python=3.7") or by an install command; elsewhere
// the word is a condition on another package: {version = "1.2", python = "<3.8"}.
bool is_entry(std::string_view line, std::size_t at) {
  if (is_install(line)) return true;
  const std::string_view before = line.substr(0, at);
  return before.find_first_not_of(" \t-*`\"'") == std::string_view::npos || before.ends_with("::");
}

// "Any Python 3", as in python = "^3.7", is no bound.
void note(VersionOf package, std::optional<int> allowed, NewestVersions& newest) {
  const bool any_python =
      package == &NewestVersions::python && allowed.value_or(0) % kMinors == kMinors - 1;
  if (!allowed || any_python) return;
  NewestVersions here;
  here.*package = static_cast<std::int16_t>(*allowed);
  newest = merged(newest, here);
}

void read_line(std::string_view line, NewestVersions& newest) {
  for (const PackageName& name : known_packages())
    for (std::size_t at = line.find(name.written); at != std::string_view::npos;
         at = line.find(name.written, at + 1)) {
      const std::size_t end = at + name.written.size();
      if (name.package == &NewestVersions::lightning && is_fork(line, at, end)) {
        constexpr int kOfItsOwn = 100;  // older than all that was removed
        note(name.package, kOfItsOwn, newest);
        continue;
      }
      if ((at > 0 && in_name(line[at - 1])) || (end < line.size() && in_name(line[end]))) continue;
      if (name.package == &NewestVersions::python && !is_entry(line, at)) continue;
      const auto tag = fetched_version(line.substr(end));
      const Allowed allowed = tag ? Allowed{tag, tag} : allowed_by(line.substr(end));
      if (!tag && at > 0 && line.find("git+") < at) continue;  // the name within the address
      note(name.package, allowed.newest, newest);
      if (name.package == &NewestVersions::lightning)
        note(&NewestVersions::least_lightning, allowed.least, newest);
    }
}

// python_requires=">=3.6,<3.8", requires-python = "<3.8", and python_version = "3.7" of a Pipfile;
// a marker of that name stands behind a requirement.
void read_python_keys(std::string_view line, bool in_requires, NewestVersions& newest) {
  for (const std::string_view key :
       {"python_requires", "requires-python", "python_version", "python_full_version"}) {
    const std::size_t at = line.find(key);
    if (at == std::string_view::npos) continue;
    if (key.starts_with("python_") && key != "python_requires" && (!in_requires || at > 0))
      continue;
    note(&NewestVersions::python, allowed_by(line.substr(at + key.size())).newest, newest);
  }
}

// The last container of NVIDIA (year and month) with a version of PyTorch, by its release notes:
// 21.07 has 1.10.0a0. Older ones than the first have no newer PyTorch.
struct Container {
  int tag;
  std::int16_t torch;
};
constexpr Container kContainers[] = {{2007, 106}, {2010, 107}, {2102, 108}, {2106, 109},
                                     {2110, 110}, {2202, 111}, {2205, 112}, {2211, 113},
                                     {2302, 114}, {2303, 200}};

// FROM nvcr.io/nvidia/pytorch:21.07-py3.
void read_container(std::string_view line, NewestVersions& newest) {
  constexpr std::string_view kName = "nvcr.io/nvidia/pytorch:";
  const std::size_t at = line.find(kName);
  if (at == std::string_view::npos) return;
  std::string_view tag = line.substr(at + kName.size());
  const auto version = take_version(tag);
  if (!version || version->parts < 2) return;
  for (const Container& each : kContainers)
    if (version->number <= each.tag) return note(&NewestVersions::torch, each.torch, newest);
}

// FROM pytorch/pytorch:1.4-cuda10.1-cudnn7-devel, also in docker run, and FROM python:3.7-slim.
void read_image(std::string_view line, NewestVersions& newest) {
  constexpr struct {
    std::string_view name;
    VersionOf package;
  } kImages[] = {{"pytorch/pytorch:", &NewestVersions::torch},
                 {"FROM python:", &NewestVersions::python}};
  for (const auto& image : kImages) {
    const std::size_t at = line.find(image.name);
    if (at == std::string_view::npos) continue;
    std::string_view tag = line.substr(at + image.name.size());
    const auto version = take_version(tag);
    if (version && version->parts > 1) note(image.package, version->number, newest);
  }
  read_container(line, newest);
}

// What stands from the package's name to the end of its entry in a lock file:
// "torch": {"hashes": [...], "version": "==1.2.0"} or name = "torch", version = "1.2.0".
std::optional<int> locked_version(std::string_view entry) {
  constexpr std::string_view kKey = "version";
  const std::size_t at = entry.find(kKey);
  if (at == std::string_view::npos) return std::nullopt;
  entry.remove_prefix(at + kKey.size());
  skip(entry, "\"'=: \t");
  const auto version = take_version(entry);
  return version ? std::optional(version->number) : std::nullopt;
}

}  // namespace

NewestVersions read_lock(std::string_view text) {
  NewestVersions newest;
  for (const PackageName& name : known_packages()) {
    const std::string quoted = '"' + std::string(name.written) + '"';
    for (std::size_t at = text.find(quoted); at != std::string_view::npos;
         at = text.find(quoted, at + 1)) {
      const std::string_view rest = text.substr(at + quoted.size());
      const bool json = rest.starts_with(": {");
      const bool toml = text.substr(0, at).ends_with("name = ");
      if (!json && !toml) continue;
      const auto version = locked_version(rest.substr(0, rest.find(json ? "}" : "\n[")));
      note(name.package, version, newest);
    }
  }
  return newest;
}

NewestVersions read_requirements(std::string_view text) {
  NewestVersions newest;
  bool in_requires = false;  // the section of a Pipfile
  while (!text.empty()) {
    std::string_view line = take_line(text);
    if (line.starts_with('[')) in_requires = line.starts_with("[requires]");
    read_image(line, newest);
    line = line.substr(0, line.find('#'));
    read_line(line, newest);
    read_python_keys(line, in_requires, newest);
  }
  return newest;
}

NewestVersions read_python_version(std::string_view text) {
  NewestVersions newest;
  while (!text.empty()) {
    std::string_view line = take_line(text);
    const auto version = take_version(line);
    if (version && version->parts > 1) note(&NewestVersions::python, version->number, newest);
  }
  return newest;
}

NewestVersions read_installs(std::string_view text) {
  NewestVersions newest;
  bool continued = false;  // by a backslash, from an install command
  while (!text.empty()) {
    std::string_view line = take_line(text);
    line = line.substr(0, line.find('#'));
    const std::size_t end = line.find_last_not_of(" \t\r");
    const bool goes_on = end != std::string_view::npos && line[end] == '\\';
    continued = continued || is_install(line);
    if (continued) read_line(line, newest);
    continued = continued && goes_on;
    read_image(line, newest);
    newest = merged(newest, read_environment(line));
  }
  return newest;
}

}  // namespace bench::diagnose
