// Which paths there are, from listings of their directories: of the many files that an import may
// mean most are not there, and the disk is asked once for a directory instead of once for each.
#pragma once

#include "diagnose/driver/directory.hpp"

#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

namespace bench::diagnose {

struct KnownPath {
  bool is_directory = false;
  bool is_link = false;
};

class KnownPaths {
 public:
  explicit KnownPaths(Lister list) : list_(std::move(list)) {}

  // Nothing where there is no such file or directory. Safe to use from several threads.
  std::optional<KnownPath> find(const std::string& path);

 private:
  struct Listing {
    std::unordered_map<std::string, KnownPath> entries;
    bool is_whole = true;  // false: it cannot be read, or holds more than are listed
  };

  const Listing& listing_of(const std::string& directory);
  bool is_absent(const std::string& directory);

  Lister list_;
  std::recursive_mutex mutex_;  // a directory is looked up in the one above it
  std::unordered_map<std::string, Listing> listings_;
};

}  // namespace bench::diagnose
