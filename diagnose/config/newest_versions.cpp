#include "diagnose/config/newest_versions.hpp"

#include <algorithm>
#include <span>

namespace bench::diagnose {
namespace {

// Up to this version of one thing, the other cannot be newer than that.
struct Bound {
  std::int16_t version;
  std::int16_t newest;
};

// The last PyTorch with a wheel for a Python (PyPI).
constexpr auto kTorchOfPython =
    std::to_array<Bound>({{207, 104}, {305, 105}, {306, 110}, {307, 113}, {308, 204}, {309, 208}});

// The last Lightning whose Requires-Python and Requires-Dist (torch) hold (PyPI).
constexpr auto kLightningOfPython = std::to_array<Bound>({{306, 105}, {307, 109}, {308, 204}});
constexpr auto kLightningOfTorch = std::to_array<Bound>({{103, 101},
                                                         {105, 103},
                                                         {107, 105},
                                                         {108, 106},
                                                         {109, 108},
                                                         {110, 109},
                                                         {111, 200},
                                                         {112, 201},
                                                         {199, 202},
                                                         {200, 203}});

// Each release of these asks for one release of PyTorch (Requires-Dist); older ones, which are in
// no table, ask for any.
constexpr auto kTorchOfVision = std::to_array<Bound>({{4, 102},
                                                      {5, 104},
                                                      {6, 105},
                                                      {7, 106},
                                                      {8, 107},
                                                      {9, 108},
                                                      {10, 109},
                                                      {11, 110},
                                                      {12, 111},
                                                      {13, 112},
                                                      {14, 113},
                                                      {15, 200},
                                                      {16, 201}});
constexpr auto kTorchOfAudio = std::to_array<Bound>({{3, 102},
                                                     {4, 104},
                                                     {5, 105},
                                                     {6, 106},
                                                     {7, 107},
                                                     {8, 108},
                                                     {9, 109},
                                                     {10, 110},
                                                     {11, 111},
                                                     {12, 112},
                                                     {13, 113},
                                                     {200, 200}});
constexpr auto kTorchOfText = std::to_array<Bound>(
    {{9, 108}, {10, 109}, {11, 110}, {12, 111}, {13, 112}, {14, 113}, {15, 200}, {16, 201}});

std::int16_t bounded(std::int16_t version, std::span<const Bound> table) {
  const auto at = std::find_if(table.begin(), table.end(),
                               [&](const Bound& bound) { return version <= bound.version; });
  return at == table.end() ? kAnyVersion : at->newest;
}

std::int16_t of_sibling(std::int16_t version, std::span<const Bound> table) {
  return version < table.front().version ? kAnyVersion : bounded(version, table);
}

}  // namespace

NewestVersions merged(const NewestVersions& one, const NewestVersions& other) {
  NewestVersions out;
  for (const VersionOf field : kVersionFields) {
    const bool open = one.*field == kAnyVersion || other.*field == kAnyVersion;
    out.*field = open ? std::min(one.*field, other.*field) : std::max(one.*field, other.*field);
  }
  return out;
}

void fill_open(NewestVersions& first, const NewestVersions& other) {
  for (const VersionOf field : kVersionFields)
    if (first.*field == kAnyVersion) first.*field = other.*field;
}

NewestVersions with_implied(NewestVersions versions) {
  NewestVersions implied;
  implied.torch = std::min({bounded(versions.python, kTorchOfPython),
                            of_sibling(versions.torchvision, kTorchOfVision),
                            of_sibling(versions.torchaudio, kTorchOfAudio),
                            of_sibling(versions.torchtext, kTorchOfText)});
  const std::int16_t torch = std::min(versions.torch, implied.torch);
  implied.lightning =
      std::min(bounded(versions.python, kLightningOfPython), bounded(torch, kLightningOfTorch));
  fill_open(versions, implied);
  return versions;
}

}  // namespace bench::diagnose
