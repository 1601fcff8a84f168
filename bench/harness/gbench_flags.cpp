#include "bench/harness/gbench_flags.hpp"

#include "bench/core/error.hpp"
#include "bench/core/nearest.hpp"

#include <regex.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

namespace bench {
namespace {

constexpr const char* kFormats[] = {"console", "json", "csv"};

// What the library itself takes (version 1.7); a misspelt flag must not be ignored.
constexpr const char* kLibraryFlags[] = {
    "benchmark_repetitions",
    "benchmark_report_aggregates_only",
    "benchmark_display_aggregates_only",
    "benchmark_enable_random_interleaving",
    "benchmark_color",
    "benchmark_counters_tabular",
    "benchmark_context",
    "benchmark_time_unit",
    "benchmark_min_time",
    "benchmark_min_warmup_time",
    "benchmark_perf_counters",
    "v",
};
constexpr const char* kOwnFlags[] = {"benchmark_filter", "benchmark_list_tests", "benchmark_format",
                                     "benchmark_out", "benchmark_out_format"};

struct Flag {
  std::string name;
  std::optional<std::string> value;
};

Flag split(const std::string& text) {
  const std::size_t begin = text.find_first_not_of('-');
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos) return {text.substr(begin), std::nullopt};
  return {text.substr(begin, equals - begin), text.substr(equals + 1)};
}

std::string format_value(const Flag& flag) {
  const std::string value = flag.value.value_or("");
  for (const char* known : kFormats) {
    if (value == known) return value;
  }
  throw UsageError("--" + flag.name + "=" + value + ": expected console, json or csv");
}

bool truth(const Flag& flag) {
  const std::string value = flag.value.value_or("true");
  if (value == "true" || value == "1" || value == "yes" || value == "on") return true;
  if (value == "false" || value == "0" || value == "no" || value == "off") return false;
  throw UsageError("--" + flag.name + "=" + value + ": expected true or false");
}

bool is_library_flag(const std::string& name) {
  return std::find(std::begin(kLibraryFlags), std::end(kLibraryFlags), name) !=
         std::end(kLibraryFlags);
}

std::vector<std::string> known_flags() {
  std::vector<std::string> known(std::begin(kOwnFlags), std::end(kOwnFlags));
  known.insert(known.end(), std::begin(kLibraryFlags), std::end(kLibraryFlags));
  return known;
}

}  // namespace

BenchmarkFlags parse_benchmark_flags(const std::vector<std::string>& typed) {
  BenchmarkFlags flags;
  for (const std::string& text : typed) {
    const Flag flag = split(text);
    if (flag.name == "benchmark_filter") {
      flags.filter = flag.value.value_or("");
      const NameFilter checked(flags.filter);
    } else if (flag.name == "benchmark_list_tests") {
      flags.list_tests = truth(flag);
    } else if (flag.name == "benchmark_format") {
      flags.format = format_value(flag);
    } else if (flag.name == "benchmark_out_format") {
      flags.out_format = format_value(flag);
    } else if (flag.name == "benchmark_out") {
      flags.out_file = flag.value.value_or("");
      if (flags.out_file.empty()) throw UsageError("--benchmark_out: expected =FILE");
    } else if (is_library_flag(flag.name)) {
      flags.rest.push_back(text);
    } else {
      throw UsageError(unknown_name_message("flag", flag.name, known_flags()));
    }
  }
  return flags;
}

struct NameFilter::Compiled {
  regex_t expression;
};

NameFilter::NameFilter(std::string expression) {
  if (expression.starts_with("-")) {
    complement_ = true;
    expression.erase(0, 1);
  }
  if (expression.empty() || expression == "all") return;
  compiled_ = new Compiled;
  const int error = ::regcomp(&compiled_->expression, expression.c_str(), REG_EXTENDED | REG_NOSUB);
  if (error == 0) return;
  std::array<char, 256> reason{};
  ::regerror(error, &compiled_->expression, reason.data(), reason.size());
  delete compiled_;
  throw UsageError("--benchmark_filter=" + expression +
                   ": expected an extended regular expression: " + reason.data());
}

NameFilter::~NameFilter() {
  if (compiled_ == nullptr) return;
  ::regfree(&compiled_->expression);
  delete compiled_;
}

bool NameFilter::selects(const std::string& name) const {
  if (compiled_ == nullptr) return !complement_;
  const bool matches = ::regexec(&compiled_->expression, name.c_str(), 0, nullptr, 0) == 0;
  return matches != complement_;
}

}  // namespace bench
