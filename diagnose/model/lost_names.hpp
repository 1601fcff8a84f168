// What a file itself says of the versions it can run with: names that PyTorch, Lightning and their
// kin have lost, and Python that newer versions do not parse. A program that uses them without a
// way around has not been run with what came after.
#pragma once

#include "diagnose/config/newest_versions.hpp"
#include "diagnose/model/module.hpp"

namespace bench::diagnose {

NewestVersions versions_by_names(const Module& module);

}  // namespace bench::diagnose
