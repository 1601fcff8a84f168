// Conversions from the raw values of a setting to what Settings holds. Each accepts only what makes
// sense and throws BadValue with the expectation otherwise.
#pragma once

#include "bench/plan/setting_table.hpp"

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

namespace bench {

std::vector<std::string> words(const std::vector<Value>& values);  // non-empty, distinct
std::vector<Strategy> strategies(const std::vector<Value>& values);
std::vector<std::int64_t> positive(const std::vector<Value>& values);  // 1 or more, distinct
std::vector<int> small_positive(const std::vector<Value>& values);     // also fits an int
std::vector<double> positive_numbers(const std::vector<Value>& values);
std::vector<bool> booleans(const std::vector<Value>& values);
std::int64_t not_negative(const std::vector<Value>& values);
int small_not_negative(const std::vector<Value>& values);  // also fits an int
double fraction(const std::vector<Value>& values);         // in [0, 1)
std::string one_of(const std::vector<Value>& values, std::initializer_list<const char*> known);
void set_gpu_counts(Settings& settings, const std::vector<Value>& values);
std::vector<std::int64_t> parse_shape(const std::string& text);  // "3x224x224"

// A file's stem as part of a case's name, whose separators are '/' and ':'.
std::string case_name_part(std::string stem);

}  // namespace bench
