#include "diagnose/config/requirements.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <optional>
#include <string>

namespace bench::diagnose {
namespace {

struct PackageName {
  std::string_view written;
  std::int16_t NewestVersions::*package;
};

constexpr auto kPackages = std::to_array<PackageName>({
    {"pytorch-lightning", &NewestVersions::lightning},
    {"pytorch_lightning", &NewestVersions::lightning},
    {"lightning", &NewestVersions::lightning},
    {"pytorch", &NewestVersions::torch},
    {"torch", &NewestVersions::torch},
});

constexpr int kMinors = 100;  // minor versions that fit below one major version

bool in_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.';
}

void skip(std::string_view& text, std::string_view characters) {
  text.remove_prefix(std::min(text.find_first_not_of(characters), text.size()));
}

struct Version {
  int number = 0;
  int parts = 0;
  bool has_patch = false;  // 1.9.1: a bound within the minor version
};

// Reads 1.5.10 and leaves what follows; nothing where no number stands.
std::optional<Version> take_version(std::string_view& text) {
  std::array<int, 3> parts{};
  Version out;
  while (out.parts < static_cast<int>(parts.size())) {
    if (text.starts_with('-')) break;
    int& part = parts.at(static_cast<std::size_t>(out.parts));
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), part);
    if (error != std::errc()) break;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    ++out.parts;
    if (!text.starts_with('.')) break;
    text.remove_prefix(1);
  }
  if (out.parts == 0 || parts[0] >= kMinors || parts[1] >= kMinors) return std::nullopt;
  out.number = parts[0] * kMinors + parts[1];
  out.has_patch = parts[2] > 0;
  return out;
}

// The newest version that one constraint allows; nothing for >= and its kin.
std::optional<int> upper_bound(std::string_view op, const Version& version) {
  const int end_of_major = version.number / kMinors * kMinors + kMinors - 1;
  if (op == "==" || op == "===" || op == "=" || op == "<=") return version.number;
  if (op == "<") return version.has_patch ? version.number : version.number - 1;
  if (op == "~=") return version.parts > 2 ? version.number : end_of_major;
  if (op == "~") return version.parts > 1 ? version.number : end_of_major;
  if (op == "^") return end_of_major;
  return std::nullopt;
}

// What stands behind a package's name: ==1.4.5, =1.7=py3.7, >=1.3,<1.9, = "^1.5".
std::optional<int> newest_allowed(std::string_view text) {
  skip(text, " \t");
  if (text.starts_with('[')) text.remove_prefix(std::min(text.find(']') + 1, text.size()));
  skip(text, " \t\"'(");
  std::optional<int> newest;
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
    if (!version) return newest;
    if (const auto bound = upper_bound(op, *version))
      newest = std::min(newest.value_or(*bound), *bound);
    text.remove_prefix(
        std::min(text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789*+."), text.size()));
    skip(text, " \t");
    if (!text.starts_with(',')) return newest;
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

void read_line(std::string_view line, NewestVersions& newest) {
  for (const PackageName& name : kPackages)
    for (std::size_t at = line.find(name.written); at != std::string_view::npos;
         at = line.find(name.written, at + 1)) {
      const std::size_t end = at + name.written.size();
      if ((at > 0 && in_name(line[at - 1])) || (end < line.size() && in_name(line[end]))) continue;
      const auto tag = fetched_version(line.substr(end));
      const auto allowed = tag ? tag : newest_allowed(line.substr(end));
      if (!tag && at > 0 && line.find("git+") < at) continue;  // the name within the address
      NewestVersions here;
      here.*name.package = static_cast<std::int16_t>(allowed.value_or(kAnyVersion));
      newest = merged(newest, here);
    }
}

// FROM pytorch/pytorch:1.4-cuda10.1-cudnn7-devel, also in docker run.
void read_image(std::string_view line, NewestVersions& newest) {
  constexpr std::string_view kImage = "pytorch/pytorch:";
  const std::size_t at = line.find(kImage);
  if (at == std::string_view::npos) return;
  line.remove_prefix(at + kImage.size());
  const auto version = take_version(line);
  if (version && version->parts > 1)
    newest = merged(newest, {static_cast<std::int16_t>(version->number), kAnyVersion});
}

bool is_install(std::string_view line) {
  const auto has = [&](std::string_view word) { return line.find(word) != std::string_view::npos; };
  return has("install") && (has("pip") || has("conda") || has("mamba") || has("uv "));
}

std::string_view take_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
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
  for (const PackageName& name : kPackages) {
    const std::string quoted = '"' + std::string(name.written) + '"';
    for (std::size_t at = text.find(quoted); at != std::string_view::npos;
         at = text.find(quoted, at + 1)) {
      const std::string_view rest = text.substr(at + quoted.size());
      const bool json = rest.starts_with(": {");
      const bool toml = text.substr(0, at).ends_with("name = ");
      if (!json && !toml) continue;
      const auto version = locked_version(rest.substr(0, rest.find(json ? "}" : "\n[")));
      if (!version) continue;
      NewestVersions here;
      here.*name.package = static_cast<std::int16_t>(*version);
      newest = merged(newest, here);
    }
  }
  return newest;
}

NewestVersions merged(const NewestVersions& one, const NewestVersions& other) {
  const auto highest = [](std::int16_t a, std::int16_t b) {
    if (a == kAnyVersion || b == kAnyVersion) return std::min(a, b);  // not bounded there
    return std::max(a, b);
  };
  return {highest(one.torch, other.torch), highest(one.lightning, other.lightning)};
}

NewestVersions read_requirements(std::string_view text) {
  NewestVersions newest;
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    read_line(line.substr(0, line.find('#')), newest);
    read_image(line, newest);
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
  }
  return newest;
}

}  // namespace bench::diagnose
