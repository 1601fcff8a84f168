// The newest versions of frameworks that a project can run with, and what one of them says about
// another: Python 3.7 has no PyTorch above 1.13, and PyTorch 1.8 no Lightning above 1.6.
#pragma once

#include <array>
#include <cstdint>

namespace bench::diagnose {

inline constexpr std::int16_t kAnyVersion = 9999;

// As numbers that compare: 1.4 is 104; "below 2.0" is 199.
struct NewestVersions {
  std::int16_t torch = kAnyVersion;
  std::int16_t lightning = kAnyVersion;
  std::int16_t python = kAnyVersion;
  std::int16_t torchvision = kAnyVersion;
  std::int16_t torchaudio = kAnyVersion;
  std::int16_t torchtext = kAnyVersion;
  std::int16_t least_lightning = kAnyVersion;  // the oldest one that is asked for: >=1.8, ==1.8
};

using VersionOf = std::int16_t NewestVersions::*;

inline constexpr std::array<VersionOf, 7> kVersionFields{
    &NewestVersions::torch,          &NewestVersions::lightning,  &NewestVersions::python,
    &NewestVersions::torchvision,    &NewestVersions::torchaudio, &NewestVersions::torchtext,
    &NewestVersions::least_lightning};

// The highest bound of two files of one directory, for each package.
NewestVersions merged(const NewestVersions& one, const NewestVersions& other);

// What `first` leaves open is taken from `other`.
void fill_open(NewestVersions& first, const NewestVersions& other);

// The same with PyTorch and Lightning where Python or a package that is built for one PyTorch
// bounds them and nothing else does.
NewestVersions with_implied(NewestVersions versions);

}  // namespace bench::diagnose
