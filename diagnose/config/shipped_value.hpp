// Values that a project ships for the keys of its configuration: in its config files, and in the
// command lines that its scripts and documents show.
#pragma once

#include "diagnose/model/value.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace bench::diagnose {

struct ShippedValue {
  enum class Place : std::uint8_t {
    config,     // a config file where the script's configurations stand
    elsewhere,  // another file of the project that looks like one
    command,    // an override: --grad-clip 1, optim.grad_clip=1
  };
  std::string file;
  std::string path;  // dotted keys; for an override the last key alone
  Value value;       // unknown where it is not written out
  Place place = Place::config;
  std::string script = {};  // of an override in a launch line: the file name of what it starts
};

// All that the project says of a key, whatever stands above the key; one override that is not known
// where it has more files than are looked at.
using ShippedValues = std::function<std::vector<ShippedValue>(const std::string& key)>;

}  // namespace bench::diagnose
