#include "bench/plan/setting_values.hpp"

#include "bench/core/nearest.hpp"

#include <algorithm>
#include <charconv>
#include <limits>

namespace bench {
namespace {

// Far above any training step, far below what overflows: samples of a batch times the bytes that
// one of them takes, and buckets in MiB, stay within 64 bits.
constexpr std::int64_t kMostOfAnything = 1'000'000'000;

template <class T>
std::vector<T> all_of_type(const std::vector<Value>& values) {
  std::vector<T> typed;
  typed.reserve(values.size());
  for (const Value& value : values) typed.push_back(std::get<T>(value));
  return typed;
}

std::string text_of(const std::string& value) { return value; }
std::string text_of(std::int64_t value) { return std::to_string(value); }

// The same point of a sweep twice would be the same case twice.
template <class T>
void require_distinct(const std::vector<T>& values) {
  for (auto it = values.begin(); it != values.end(); ++it) {
    if (std::find(values.begin(), it, *it) != it) {
      throw BadValue("'" + text_of(*it) + "' is listed twice");
    }
  }
}

int require_int(std::int64_t value) {
  if (value > std::numeric_limits<int>::max()) {
    throw BadValue(std::to_string(value) + " is too large");
  }
  return static_cast<int>(value);
}

}  // namespace

std::vector<std::string> words(const std::vector<Value>& values) {
  auto list = all_of_type<std::string>(values);
  require_distinct(list);
  return list;
}

std::vector<Strategy> strategies(const std::vector<Value>& values) {
  static const std::vector<std::string> known = {
      "single", "data_parallel", "dp", "libtorch_data_parallel", "distributed", "ddp"};
  std::vector<Strategy> list;
  for (const std::string& word : words(values)) {
    const auto strategy = parse_strategy(word);
    if (!strategy) throw BadValue(unknown_name_message("strategy", word, known));
    if (std::find(list.begin(), list.end(), *strategy) != list.end()) {
      throw BadValue(std::string("'") + strategy_name(*strategy) + "' is listed twice");
    }
    list.push_back(*strategy);
  }
  return list;
}

std::vector<std::int64_t> positive(const std::vector<Value>& values) {
  auto list = all_of_type<std::int64_t>(values);
  for (const std::int64_t value : list) {
    if (value < 1) throw BadValue("expected 1 or more, found " + std::to_string(value));
    if (value > kMostOfAnything) {
      throw BadValue("expected at most " + std::to_string(kMostOfAnything) + ", found " +
                     std::to_string(value));
    }
  }
  require_distinct(list);
  return list;
}

std::vector<int> small_positive(const std::vector<Value>& values) {
  std::vector<int> list;
  for (const std::int64_t value : positive(values)) list.push_back(require_int(value));
  return list;
}

std::vector<double> positive_numbers(const std::vector<Value>& values) {
  auto list = all_of_type<double>(values);
  for (const double value : list) {
    // Also refuses not-a-number.
    if (!(value > 0 && value <= static_cast<double>(kMostOfAnything))) {
      throw BadValue("expected a number above 0 and at most " + std::to_string(kMostOfAnything));
    }
  }
  return list;
}

std::vector<bool> booleans(const std::vector<Value>& values) {
  auto list = all_of_type<bool>(values);
  if (list.size() > 2 || (list.size() == 2 && list[0] == list[1])) {
    throw BadValue("true or false is listed twice");
  }
  return list;
}

std::int64_t not_negative(const std::vector<Value>& values) {
  const auto value = std::get<std::int64_t>(values[0]);
  if (value < 0) throw BadValue("expected 0 or more, found " + std::to_string(value));
  return value;
}

int small_not_negative(const std::vector<Value>& values) {
  return require_int(not_negative(values));
}

double fraction(const std::vector<Value>& values) {
  const double value = std::get<double>(values[0]);
  if (!(value >= 0 && value < 1)) throw BadValue("expected a number from 0 to below 1");
  return value;
}

std::string one_of(const std::vector<Value>& values, std::initializer_list<const char*> known) {
  const auto& word = std::get<std::string>(values[0]);
  const std::vector<std::string> names(known.begin(), known.end());
  if (std::find(names.begin(), names.end(), word) == names.end()) {
    throw BadValue(unknown_name_message("value", word, names));
  }
  return word;
}

void set_gpu_counts(Settings& settings, const std::vector<Value>& values) {
  const auto list = words(values);
  settings.gpu_counts.clear();
  if (list.size() == 1 && (list[0] == "all" || list[0] == "powers")) {
    settings.gpu_count_rule = list[0] == "all" ? GpuCountRule::all : GpuCountRule::powers;
    return;
  }
  for (const std::string& word : list) {
    int count = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), count);
    if (error != std::errc() || end != word.data() + word.size() || count < 1) {
      throw BadValue("expected all, powers or numbers of GPUs, found '" + word + "'");
    }
    settings.gpu_counts.push_back(count);
  }
  settings.gpu_count_rule = GpuCountRule::listed;
}

std::vector<std::int64_t> parse_shape(const std::string& text) {
  std::vector<std::int64_t> shape;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('x', begin), text.size());
    std::int64_t extent = 0;
    const auto [stop, error] = std::from_chars(text.data() + begin, text.data() + end, extent);
    if (error != std::errc() || stop != text.data() + end || extent < 1) {
      throw BadValue("expected the shape of one sample such as 3x224x224, found '" + text + "'");
    }
    shape.push_back(extent);
    begin = end + 1;
  }
  return shape;
}

std::string case_name_part(std::string stem) {
  for (char& c : stem) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '_' || c == '-' || c == '.';
    if (!plain) c = '_';
  }
  return stem.empty() ? "scenario" : stem;
}

}  // namespace bench
