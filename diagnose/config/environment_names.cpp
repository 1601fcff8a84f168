#include "diagnose/config/environment_names.hpp"

#include "diagnose/config/version_text.hpp"
#include "diagnose/model/role_names.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>
#include <string>
#include <vector>

namespace bench::diagnose {
namespace {

constexpr int kOldestMinor = 4;  // of Python 3; what is lower is no version but a name: p3_2
constexpr int kNewestMinor = 30;

bool is_letter(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> out;
  while (true) {
    skip(line, " \t\r`\"';");
    if (line.empty()) return out;
    const std::size_t end = std::min(line.find_first_of(" \t\r`\"';"), line.size());
    out.push_back(line.substr(0, end));
    line.remove_prefix(end);
  }
}

std::string_view last_component(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// The number behind "py", "python" or "p": 37, 3.7, _3_10_4. A bare p takes no separator, since
// p3.8xlarge is a machine.
std::optional<int> python_behind(std::string_view text, bool bare) {
  if (!bare && !text.empty() && std::string_view("-_/").find(text[0]) != std::string_view::npos)
    text.remove_prefix(1);
  if (!text.starts_with('3')) return std::nullopt;
  text.remove_prefix(1);
  if (!bare && !text.empty() && (text[0] == '.' || text[0] == '_')) text.remove_prefix(1);
  int minor = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), minor);
  if (error != std::errc() || minor < kOldestMinor || minor > kNewestMinor) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  if (!text.empty() && std::isalpha(static_cast<unsigned char>(text[0])) != 0) return std::nullopt;
  return 3 * kMinors + minor;
}

// Versions within a name: pytorch_p36, py37, torch-1.8.0, python/3.7.4.
NewestVersions versions_in(std::string_view written) {
  const std::string name = lowered(written);
  NewestVersions out;
  const auto note = [&](VersionOf package, int version) {
    NewestVersions here;
    here.*package = static_cast<std::int16_t>(version);
    out = merged(out, here);
  };
  for (const std::string_view prefix : {"python", "py", "p"})
    for (std::size_t at = name.find(prefix); at != std::string::npos;
         at = name.find(prefix, at + 1)) {
      if (at > 0 && is_letter(name[at - 1])) continue;
      const auto behind = std::string_view(name).substr(at + prefix.size());
      if (const auto version = python_behind(behind, prefix == "p"))
        note(&NewestVersions::python, *version);
    }
  constexpr std::string_view kTorch = "torch";
  if (const std::size_t at = name.find(kTorch); at != std::string::npos) {
    std::string_view behind = std::string_view(name).substr(at + kTorch.size());
    skip(behind, "-_/v");
    const auto version = take_version(behind);
    if (version && version->parts > 1) note(&NewestVersions::torch, version->number);
  }
  return out;
}

// python3.7 as a program or within a path: lib/python3.7/site-packages.
std::string_view versioned_python(std::string_view word) {
  constexpr std::string_view kName = "python3.";
  const std::size_t at = word.find(kName);
  const bool begins = at == 0 || (at != std::string_view::npos && word[at - 1] == '/');
  return begins ? word.substr(at, word.find('/', at) - at) : std::string_view();
}

// The environment behind /envs/ in a path.
std::string_view folder_of_environment(std::string_view word) {
  constexpr std::string_view kFolder = "/envs/";
  const std::size_t at = word.find(kFolder);
  if (at == std::string_view::npos) return {};
  word.remove_prefix(at + kFolder.size());
  return word.substr(0, word.find('/'));
}

// source activate NAME, . path/NAME/bin/activate, conda activate NAME.
std::string_view activated(const std::vector<std::string_view>& words, std::size_t at) {
  if (last_component(words[at]) != "activate") return {};
  if (at + 1 < words.size() && !words[at + 1].starts_with('-') && words[at + 1] != "&&")
    return last_component(words[at + 1]);
  constexpr std::string_view kScript = "/bin/activate";
  if (!words[at].ends_with(kScript)) return {};
  return last_component(words[at].substr(0, words[at].size() - kScript.size()));
}

}  // namespace

NewestVersions read_environment(std::string_view line) {
  const std::vector<std::string_view> words = words_of(line);
  NewestVersions out;
  const auto note = [&](std::string_view name) { out = merged(out, versions_in(name)); };
  bool loads_modules = false;
  bool is_conda = false;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = words[i];
    const std::string_view next = i + 1 < words.size() ? words[i + 1] : std::string_view();
    note(activated(words, i));
    note(folder_of_environment(word));
    if (loads_modules) note(word);
    if (is_conda && (word == "-n" || word == "--name")) note(next);
    note(versioned_python(word));
    loads_modules = loads_modules || word == "ml" || (word == "module" && next == "load");
    is_conda = is_conda || word == "conda" || word == "mamba";
  }
  return out;
}

}  // namespace bench::diagnose
