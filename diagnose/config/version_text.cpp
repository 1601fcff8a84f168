#include "diagnose/config/version_text.hpp"

#include <algorithm>
#include <array>
#include <charconv>

namespace bench::diagnose {

std::span<const PackageName> known_packages() {
  static constexpr auto kPackages = std::to_array<PackageName>({
      {"pytorch-lightning", &NewestVersions::lightning},
      {"pytorch_lightning", &NewestVersions::lightning},
      {"pytorch lightning", &NewestVersions::lightning},
      {"lightning", &NewestVersions::lightning},
      {"torchvision", &NewestVersions::torchvision},
      {"torchaudio", &NewestVersions::torchaudio},
      {"torchtext", &NewestVersions::torchtext},
      {"pytorch", &NewestVersions::torch},
      {"torch", &NewestVersions::torch},
      {"python", &NewestVersions::python},
  });
  return kPackages;
}

void skip(std::string_view& text, std::string_view characters) {
  text.remove_prefix(std::min(text.find_first_not_of(characters), text.size()));
}

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

std::string_view take_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

}  // namespace bench::diagnose
