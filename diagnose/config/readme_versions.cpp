#include "diagnose/config/readme_versions.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <optional>
#include <string>

namespace bench::diagnose {
namespace {

constexpr std::int16_t kLastWithCudatoolkit = 113;  // conda's packages of 2.0 ask for pytorch-cuda
constexpr int kMinors = 100;                        // minor versions below one major version

struct SpokenName {
  std::string_view written;
  std::int16_t NewestVersions::*package;
};

// The longer name first: "pytorch lightning" is not PyTorch.
constexpr auto kNames = std::to_array<SpokenName>({
    {"pytorch lightning", &NewestVersions::lightning},
    {"pytorch-lightning", &NewestVersions::lightning},
    {"pytorch_lightning", &NewestVersions::lightning},
    {"lightning", &NewestVersions::lightning},
    {"pytorch", &NewestVersions::torch},
    {"torch", &NewestVersions::torch},
});

constexpr auto kLeast = std::to_array<std::string_view>(
    {"+", "~", "- ", "or ", "to ", "and above", "and higher", "and later", "and newer", "and up",
     "above", "later", "newer", "higher", "upper", "greater"});

bool is_letter(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

void skip(std::string_view& text, std::string_view characters) {
  text.remove_prefix(std::min(text.find_first_not_of(characters), text.size()));
}

std::optional<int> take_number(std::string_view& text) {
  int number = 0;
  if (text.empty() || !is_digit(text.front())) return std::nullopt;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number >= kMinors) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
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
  const auto major = take_number(text);
  if (!major || !text.starts_with('.')) return std::nullopt;
  text.remove_prefix(1);
  const auto minor = take_number(text);
  if (!minor) return std::nullopt;
  while (text.size() > 1 && text.front() == '.') {
    text.remove_prefix(1);
    if (!take_number(text)) break;
  }
  if (text.starts_with("+cu")) return *major * kMinors + *minor;  // a build, not "or newer"
  skip(text, " \t`*)]");
  if (text.size() > 1 && text[0] == '-' && is_digit(text[1])) return std::nullopt;  // 1.7-1.9
  for (const std::string_view word : kLeast)
    if (text.starts_with(word)) return std::nullopt;
  return *major * kMinors + *minor;
}

NewestVersions read_line(std::string_view line) {
  NewestVersions out = read_requirements(line);
  std::size_t from = 0;
  while (from < line.size()) {
    std::size_t next = line.size();
    for (const SpokenName& name : kNames) {
      const std::size_t at = line.find(name.written, from);
      if (at >= next) continue;
      next = at;
    }
    if (next == line.size()) break;
    for (const SpokenName& name : kNames) {
      if (!line.substr(next).starts_with(name.written)) continue;
      from = next + name.written.size();
      const bool whole = next == 0 || (!is_letter(line[next - 1]) && line[next - 1] != '-');
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
  std::string lowered(text);
  std::transform(lowered.begin(), lowered.end(), lowered.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  NewestVersions out;
  std::string_view rest = lowered;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    out = merged(out, read_line(rest.substr(0, end)));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return out;
}

}  // namespace bench::diagnose
