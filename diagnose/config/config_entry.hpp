// Config files (YAML, TOML, JSON) as a flat list of keys with their places: trainer.gpus = 4 at
// line 7. Files that do not parse give what was read before the mistake.
#pragma once

#include "diagnose/model/value.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace bench::diagnose {

struct ConfigEntry {
  std::string file;
  std::string path;  // dotted keys
  Value value;
  std::uint32_t line = 1;
  std::uint32_t column = 1;
  std::uint32_t length = 1;  // of the key

  std::string_view key() const { return std::string_view(path).substr(path.rfind('.') + 1); }
  std::string_view parent() const {
    const auto dot = path.rfind('.');
    return dot == std::string::npos ? std::string_view{} : std::string_view(path).substr(0, dot);
  }
};

// What YAML understands by a plain scalar: 1e-3, null, False, on.
Value value_of_scalar(const std::string& text);

std::vector<ConfigEntry> read_yaml(const std::string& file, const std::string& text);  // and JSON
// Why it is no YAML (or JSON), with the line; empty when it is.
std::string yaml_mistake(const std::string& text);
std::vector<ConfigEntry> read_toml(const std::string& file, const std::string& text);

}  // namespace bench::diagnose
