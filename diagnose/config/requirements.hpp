// What requirement files (requirements.txt, environment.yml, setup.py, pyproject.toml ...) say of
// the versions of PyTorch and Lightning: the newest that they allow. Rules about what a newer
// version removed are notes for a project that stays below it.
#pragma once

#include <cstdint>
#include <string_view>

namespace bench::diagnose {

inline constexpr std::int16_t kAnyVersion = 9999;

// As numbers that compare: 1.4 is 104; "below 2.0" is 199.
struct NewestVersions {
  std::int16_t torch = kAnyVersion;
  std::int16_t lightning = kAnyVersion;
};

// What the text of a requirement file says. Where it bounds one package several times, the highest
// bound counts.
NewestVersions read_requirements(std::string_view text);

// The same for what a tool wrote that had resolved the requirements: Pipfile.lock, poetry.lock,
// uv.lock, pdm.lock.
NewestVersions read_lock(std::string_view text);

// The same for install commands within another text (a shell script, a README): pip install
// torch==1.4, conda install pytorch=1.4, FROM pytorch/pytorch:1.4-cuda10.1.
NewestVersions read_installs(std::string_view text);

// The highest bound of two files of one directory, for each package.
NewestVersions merged(const NewestVersions& one, const NewestVersions& other);

}  // namespace bench::diagnose
