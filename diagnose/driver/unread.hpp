// Why a file is not what its name says: a notebook that was cut off, a config that does not parse.
// Such a file gives no findings, and is not called clean.
#pragma once

#include "diagnose/driver/source_files.hpp"

#include <string>

namespace bench::diagnose {

// What is wrong with the text of a notebook or a config file; empty when it can be read, and for
// files of other types.
std::string why_unread(FileType type, const std::string& path, const std::string& text);

// It has words that the settings of a training have: a folder holds many other YAML and JSON files.
bool may_configure_training(const std::string& text);

}  // namespace bench::diagnose
