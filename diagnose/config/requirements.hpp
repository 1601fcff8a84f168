// What requirement files (requirements.txt, environment.yml, setup.py, pyproject.toml ...) say of
// the versions of PyTorch, Lightning and what they depend on: the newest that they allow. Rules
// about what a newer version removed are notes for a project that stays below it.
#pragma once

#include "diagnose/config/newest_versions.hpp"

#include <string_view>

namespace bench::diagnose {

// What the text of a requirement file says. Where it bounds one package several times, the highest
// bound counts.
NewestVersions read_requirements(std::string_view text);

// The same for what a tool wrote that had resolved the requirements: Pipfile.lock, poetry.lock,
// uv.lock, pdm.lock.
NewestVersions read_lock(std::string_view text);

// The same for install commands within another text (a shell script, a README): pip install
// torch==1.4, conda install pytorch=1.4, FROM pytorch/pytorch:1.4-cuda10.1; and for the names of
// environments that it enters: conda activate py37.
NewestVersions read_installs(std::string_view text);

// The same for .python-version of pyenv.
NewestVersions read_python_version(std::string_view text);

}  // namespace bench::diagnose
