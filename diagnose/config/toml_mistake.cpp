#include "diagnose/config/toml_mistake.hpp"

#include <toml++/toml.h>

namespace bench::diagnose {

std::string toml_mistake(const std::string& file, const std::string& text) {
  try {
    (void)toml::parse(text);
  } catch (const toml::parse_error& error) {
    return file + ":" + std::to_string(error.source().begin.line) + ": " +
           std::string(error.description());
  }
  return {};
}

}  // namespace bench::diagnose
