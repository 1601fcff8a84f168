#include "simulator/toml_section.hpp"

#include "bench/core/error.hpp"
#include "bench/core/nearest.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>

namespace bench::simulator {
namespace {

constexpr Provenance kProvenances[] = {Provenance::measured, Provenance::scaled,
                                       Provenance::specification, Provenance::recalled};

std::optional<Provenance> parse_provenance(const toml::node& node) {
  const auto text = node.value<std::string>();
  for (const Provenance provenance : kProvenances) {
    if (text && *text == provenance_name(provenance)) return provenance;
  }
  return std::nullopt;
}

std::string number_text(double value) {
  std::ostringstream text;
  text << value;
  return text.str();
}

// A limit just below zero lets zero in.
std::string range_text(double above, double most) {
  std::string text =
      above < 0 ? std::string("a number from 0") : "a number above " + number_text(above);
  if (most != kNoLimit) text += " and at most " + number_text(most);
  return text;
}

}  // namespace

TomlSection::TomlSection(const toml::table& table, std::string file, std::string name)
    : table_(table), file_(std::move(file)), name_(std::move(name)) {}

const toml::node* TomlSection::find(std::string_view key) {
  if (std::find(known_.begin(), known_.end(), key) == known_.end()) known_.emplace_back(key);
  return table_.get(key);
}

bool TomlSection::has(std::string_view key) { return find(key) != nullptr; }

std::string TomlSection::at(const toml::node& node) const {
  return file_ + ":" + std::to_string(node.source().begin.line) + ": ";
}

void TomlSection::fail_at(const toml::node& node, const std::string& message) const {
  throw UsageError(at(node) + message);
}

std::string TomlSection::where(std::string_view key) const {
  const toml::node* node = table_.get(key);
  return at(node != nullptr ? *node : static_cast<const toml::node&>(table_));
}

void TomlSection::fail(std::string_view key, const std::string& message) const {
  throw UsageError(where(key) + message);
}

const toml::node& TomlSection::require(std::string_view key, const char* what) {
  const toml::node* node = find(key);
  if (node == nullptr) {
    const std::string where = name_.empty() ? "" : " in [" + name_ + "]";
    fail_at(table_, "missing key '" + std::string(key) + "'" + where + ", expected " + what);
  }
  return *node;
}

double TomlSection::checked(const toml::node& node, std::string_view key, double above,
                            double most) const {
  const std::string expected = std::string(key) + ": expected " + range_text(above, most);
  if (!node.is_number()) fail_at(node, expected);
  const double value = *node.value<double>();
  if (!std::isfinite(value) || value <= above || value > most) {
    fail_at(node, expected + ", found " + number_text(value));
  }
  return value;
}

double TomlSection::number(std::string_view key, double above, double most) {
  return checked(require(key, "a number"), key, above, most);
}

double TomlSection::number_or(std::string_view key, double fallback, double above, double most) {
  const toml::node* node = find(key);
  return node == nullptr ? fallback : checked(*node, key, above, most);
}

std::int32_t TomlSection::integer(std::string_view key, std::int32_t least, std::int32_t most) {
  const toml::node& node = require(key, "an integer");
  const auto value = node.is_integer() ? node.value<std::int64_t>() : std::nullopt;
  if (!value || *value < least || *value > most) {
    fail_at(node, std::string(key) + ": expected an integer from " + std::to_string(least) +
                      " to " + std::to_string(most));
  }
  return static_cast<std::int32_t>(*value);
}

std::int32_t TomlSection::integer_or(std::string_view key, std::int32_t fallback,
                                     std::int32_t least, std::int32_t most) {
  return has(key) ? integer(key, least, most) : fallback;
}

bool TomlSection::boolean_or(std::string_view key, bool fallback) {
  const toml::node* node = find(key);
  if (node == nullptr) return fallback;
  if (!node->is_boolean()) fail_at(*node, std::string(key) + ": expected true or false");
  return *node->value<bool>();
}

std::string TomlSection::text(std::string_view key) {
  const toml::node& node = require(key, "a text");
  if (!node.is_string()) fail_at(node, std::string(key) + ": expected a text in quotes");
  return *node.value<std::string>();
}

std::string TomlSection::text_or(std::string_view key, std::string fallback) {
  return has(key) ? text(key) : fallback;
}

std::vector<std::string> TomlSection::texts_or_empty(std::string_view key) {
  std::vector<std::string> texts;
  const toml::node* node = find(key);
  if (node == nullptr) return texts;
  if (!node->is_array()) fail_at(*node, std::string(key) + ": expected a list of texts");
  for (const toml::node& item : *node->as_array()) {
    if (!item.is_string()) fail_at(item, std::string(key) + ": expected a text in quotes");
    texts.push_back(*item.value<std::string>());
  }
  return texts;
}

std::vector<std::pair<double, double>> TomlSection::curve(std::string_view key, double most) {
  const toml::node& node = require(key, "a list of [x, y] points");
  std::vector<std::pair<double, double>> points;
  if (!node.is_array() || node.as_array()->empty()) {
    fail_at(node, std::string(key) + ": expected a list of [x, y] points");
  }
  for (const toml::node& item : *node.as_array()) {
    const toml::array* pair = item.as_array();
    if (pair == nullptr || pair->size() != 2) {
      fail_at(item, std::string(key) + ": expected a point [x, y]");
    }
    const double x = checked((*pair)[0], key, 0, kNoLimit);
    const double y = checked((*pair)[1], key, 0, most);
    if (!points.empty() && x <= points.back().first) {
      fail_at(item, std::string(key) + ": x must ascend, found " + number_text(x) + " after " +
                        number_text(points.back().first));
    }
    points.emplace_back(x, y);
  }
  return points;
}

std::vector<std::int32_t> TomlSection::integers_or_empty(std::string_view key) {
  std::vector<std::int32_t> numbers;
  const toml::node* node = find(key);
  if (node == nullptr) return numbers;
  const std::string expected = std::string(key) + ": expected a list of integers";
  if (!node->is_array()) fail_at(*node, expected);
  for (const toml::node& item : *node->as_array()) numbers.push_back(index_of(item, expected));
  return numbers;
}

std::int32_t TomlSection::index_of(const toml::node& node, const std::string& expected) const {
  constexpr std::int64_t kMost = 1 << 20;
  const auto value = node.is_integer() ? node.value<std::int64_t>() : std::nullopt;
  if (!value || *value < 0 || *value > kMost) fail_at(node, expected);
  return static_cast<std::int32_t>(*value);
}

std::vector<std::vector<std::int32_t>> TomlSection::rows_or_empty(std::string_view key) {
  std::vector<std::vector<std::int32_t>> rows;
  const toml::node* node = find(key);
  if (node == nullptr) return rows;
  const std::string expected = std::string(key) + ": expected rows of integers, [[0, 1], [2, 3]]";
  if (!node->is_array()) fail_at(*node, expected);
  for (const toml::node& item : *node->as_array()) {
    if (!item.is_array()) fail_at(item, expected);
    std::vector<std::int32_t>& row = rows.emplace_back();
    for (const toml::node& number : *item.as_array()) {
      row.push_back(index_of(number, expected));
    }
  }
  return rows;
}

const toml::table* TomlSection::table(std::string_view key) {
  const toml::node* node = find(key);
  if (node == nullptr) return nullptr;
  if (!node->is_table())
    fail_at(*node, std::string(key) + ": expected a table [" + std::string(key) + "]");
  return node->as_table();
}

const toml::table* TomlSection::table_or_null(std::string_view key) {
  const toml::node* node = find(key);
  return node == nullptr ? nullptr : node->as_table();
}

const toml::array* TomlSection::tables(std::string_view key) {
  const toml::node* node = find(key);
  if (node == nullptr) return nullptr;
  const bool fits = node->is_array() && node->as_array()->is_homogeneous(toml::node_type::table);
  if (!fits) fail_at(*node, std::string(key) + ": expected tables [[" + std::string(key) + "]]");
  return node->as_array();
}

Provenance TomlSection::provenance_of(std::string_view key) const {
  for (const auto& [name, provenance] : provenance_) {
    if (name == key) return provenance;
  }
  return default_provenance_;
}

Quantity TomlSection::quantity(std::string_view key, double above, double most) {
  const double value = number(key, above, most);
  return {value, provenance_of(key)};
}

Quantity TomlSection::quantity_or(std::string_view key, double fallback, Provenance provenance,
                                  double above, double most) {
  if (!has(key)) return {fallback, provenance};
  return quantity(key, above, most);
}

void TomlSection::read_provenance(const TomlSection* parent) {
  const std::string expected = "expected measured, scaled, specification or recalled";
  if (parent != nullptr) default_provenance_ = parent->default_provenance_;
  if (const toml::node* node = table_.get("provenance"); node != nullptr && node->is_string()) {
    known_.emplace_back("provenance");
    const auto provenance = parse_provenance(*node);
    if (!provenance) fail_at(*node, "provenance: " + expected);
    default_provenance_ = *provenance;
  }
  for (const Provenance provenance : kProvenances) {
    const std::string list = provenance_name(provenance);
    if (!table_.contains(list)) continue;
    for (const std::string& key : texts_or_empty(list)) {
      if (!table_.contains(key))
        fail(list, list + " names '" + key + "', which is not in this table");
      provenance_.emplace_back(key, provenance);
    }
  }
}

void TomlSection::finish() const {
  for (const auto& [key, node] : table_) {
    const std::string name(key.str());
    if (std::find(known_.begin(), known_.end(), name) != known_.end()) continue;
    const std::string what = name_.empty() ? "key" : "key in [" + name_ + "]";
    throw UsageError(file_ + ":" + std::to_string(key.source().begin.line) + ": " +
                     unknown_name_message(what, name, known_));
  }
}

toml::table parse_toml(std::string_view text, const std::string& file) {
  try {
    return toml::parse(text, file);
  } catch (const toml::parse_error& error) {
    throw UsageError(file + ":" + std::to_string(error.source().begin.line) + ": " +
                     std::string(error.description()));
  }
}

}  // namespace bench::simulator
