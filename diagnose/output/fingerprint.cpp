#include "diagnose/output/fingerprint.hpp"

#include "bench/core/fnv_hash.hpp"

namespace bench::diagnose {

std::string line_fingerprint(const Finding& finding, std::string_view file) {
  FnvHash hash;
  const auto mix = [&](std::string_view text) {
    for (const char c : text) {
      if (c != ' ' && c != '\t') hash.add(static_cast<unsigned char>(c));
    }
  };
  mix(finding.rule);
  mix(file);
  mix(finding.excerpt);
  return hash.hex();
}

std::string Fingerprints::next(const Finding& finding, std::string_view file) {
  const std::string print = line_fingerprint(finding, file);
  return print + ":" + std::to_string(++seen_[print]);
}

}  // namespace bench::diagnose
