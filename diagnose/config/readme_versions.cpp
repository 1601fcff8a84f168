#include "diagnose/config/readme_versions.hpp"

#include "diagnose/config/version_text.hpp"
#include "diagnose/model/role_names.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <string>

namespace bench::diagnose {
namespace {

constexpr std::int16_t kLastWithCudatoolkit = 113;  // conda's packages of 2.0 ask for pytorch-cuda

constexpr auto kLeast = std::to_array<std::string_view>(
    {"+", "~", "- ", "or ", "to ", "and above", "and higher", "and later", "and newer", "and up",
     "above", "later", "newer", "higher", "upper", "greater"});

bool is_letter(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

// Takes ", 3.7, 3.8" or "/3.7" behind a version and gives the highest of all; what else stands
// there is another thing and stays.
int take_list(std::string_view& text, int first) {
  int newest = first;
  while (true) {
    std::string_view rest = text;
    skip(rest, " \t`*|/,&");
    if (rest.size() == text.size() || rest.empty() || !is_digit(rest.front())) return newest;
    const auto version = take_version(rest);
    if (!version || version->parts < 2 || version->number / kMinors > first / kMinors + 1)
      return newest;
    newest = std::max(newest, version->number);
    text = rest;
  }
}

// " version 1.9.0", ": v1.7", "==1.7.1" behind a package's name; nothing where it is the least.
std::optional<int> version_behind(std::string_view text) {
  if (!text.empty() && (is_letter(text.front()) || text.front() == '-' || text.front() == '_'))
    return std::nullopt;
  skip(text, " \t:=`*_()[]");
  for (const std::string_view word : {"versions", "version", "v"})
    if (text.starts_with(word)) {
      text.remove_prefix(word.size());
      skip(text, " \t:=.");
      break;
    }
  const auto version = take_version(text);
  if (!version || version->parts < 2) return std::nullopt;
  if (text.starts_with("+cu")) return version->number;  // a build, not "or newer"
  skip(text, "x");                                      // 3.6.x
  const int newest = take_list(text, version->number);
  skip(text, " \t`*()],");
  if (text.size() > 1 && text[0] == '-' && is_digit(text[1])) return std::nullopt;  // 1.7-1.9
  for (const std::string_view word : kLeast)
    if (text.starts_with(word)) return std::nullopt;
  return newest;
}

NewestVersions read_line(std::string_view line) {
  NewestVersions out = read_requirements(line);
  std::size_t from = 0;
  while (from < line.size()) {
    std::size_t next = line.size();
    for (const PackageName& name : known_packages()) {
      const std::size_t at = line.find(name.written, from);
      if (at >= next) continue;
      next = at;
    }
    if (next == line.size()) break;
    for (const PackageName& name : known_packages()) {
      if (!line.substr(next).starts_with(name.written)) continue;
      from = next + name.written.size();
      const bool whole = next == 0 || (!is_letter(line[next - 1]) && line[next - 1] != '-');
      // The tag of nvcr.io/nvidia/pytorch:21.07-py3 is a date.
      if (line.substr(0, next).ends_with("nvidia/")) break;
      const auto version = whole ? version_behind(line.substr(from)) : std::nullopt;
      NewestVersions here;
      if (version) here.*name.package = static_cast<std::int16_t>(*version);
      out = merged(out, here);
      break;
    }
  }
  const bool conda = line.find("pytorch") != std::string_view::npos;
  if (conda && out.torch == kAnyVersion && line.find("cudatoolkit=") != std::string_view::npos)
    out.torch = kLastWithCudatoolkit;
  return out;
}

}  // namespace

NewestVersions read_readme(std::string_view text) {
  const std::string plain = lowered(text);
  NewestVersions out;
  std::string_view rest = plain;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    out = merged(out, read_line(rest.substr(0, end)));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return out;
}

}  // namespace bench::diagnose
