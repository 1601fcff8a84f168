// How texts write versions: the packages that are looked for, and the number behind a name. Shared
// by those who read requirement files, install commands and READMEs.
#pragma once

#include "diagnose/config/newest_versions.hpp"

#include <optional>
#include <span>
#include <string_view>

namespace bench::diagnose {

inline constexpr int kMinors = 100;  // minor versions that fit below one major version

struct PackageName {
  std::string_view written;  // as in requirement files, in lower case
  VersionOf package;
};

// The longer name first: "pytorch lightning" is not PyTorch.
std::span<const PackageName> known_packages();

struct Version {
  int number = 0;
  int parts = 0;
  bool has_patch = false;  // 1.9.1: a bound within the minor version
};

// Reads 1.5.10 and leaves what follows; nothing where no number stands.
std::optional<Version> take_version(std::string_view& text);

void skip(std::string_view& text, std::string_view characters);

// One line, without its end, which is taken off the text.
std::string_view take_line(std::string_view& text);

}  // namespace bench::diagnose
