// The findings of an earlier run, which are not shown again. A finding is known by its rule, its
// file and the text of its line, so that lines may move; of two of the same both have to be in the
// earlier run.
#pragma once

#include "diagnose/driver/diagnose.hpp"
#include "diagnose/driver/repository.hpp"

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace bench::diagnose {

class Baseline {
 public:
  // Reads what `--format json` wrote. Throws UsageError for a file that cannot be read or is
  // something else.
  explicit Baseline(const std::string& file);

  // Takes known findings out of the result; how many.
  std::size_t take_known(DiagnoseResult& result);
  // How many were not found again, although their rule ran and their file was checked, or is no
  // more. After take_known().
  std::size_t gone(const DiagnoseResult& result, const DiagnoseOptions& options) const;

 private:
  struct Entry {
    std::string rule;
    std::string file;             // as it was shown
    std::string repository_path;  // from the repository's root, where that is another
    std::string severity;
    std::string confidence;

    const std::string& lasting_path() const {
      return repository_path.empty() ? file : repository_path;
    }
  };

  std::map<std::string, std::vector<Entry>> left_;  // by fingerprint without its number
  RepositoryPaths paths_;
};

}  // namespace bench::diagnose
