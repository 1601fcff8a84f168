// The --benchmark_* flags: which are ours because they work on case names as users see them, which
// go to Google Benchmark as they are.
#pragma once

#include <string>
#include <vector>

namespace bench {

struct BenchmarkFlags {
  std::string filter;  // POSIX extended expression, with '-' in front: its complement
  bool list_tests = false;
  std::string format;  // "", console, json or csv: what goes to standard output
  std::string out_format = "json";
  std::string out_file;           // "" = none
  std::vector<std::string> rest;  // for the library, without the ones above except --benchmark_out*
};

// Throws UsageError that names the flag.
BenchmarkFlags parse_benchmark_flags(const std::vector<std::string>& typed);

// Whether a case of this name is selected. Expressions are checked by parse_benchmark_flags.
class NameFilter {
 public:
  explicit NameFilter(std::string expression);  // "" and "all" select everything
  ~NameFilter();
  NameFilter(const NameFilter&) = delete;
  NameFilter& operator=(const NameFilter&) = delete;
  bool selects(const std::string& name) const;

 private:
  struct Compiled;
  bool complement_ = false;
  Compiled* compiled_ = nullptr;  // null: everything
};

}  // namespace bench
