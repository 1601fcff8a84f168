#include "diagnose/config/config_entry.hpp"

#include <toml++/toml.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

namespace bench::diagnose {
namespace {

constexpr int kDepth = 24;
constexpr std::size_t kMaxEntries = 20'000;
// Items of all lists of a file together: aliases of aliases double with every line.
constexpr std::size_t kMaxItems = 100'000;
// Nesting yaml-cpp would follow by recursion; deeper input is no training config.
constexpr int kMaxNesting = 200;

Value from_scalar(const std::string& text, bool quoted) {
  if (!quoted) return value_of_scalar(text);
  Value value;
  value.string = text;
  value.type = Value::Type::string;
  return value;
}

}  // namespace

Value value_of_scalar(const std::string& text) {
  Value value;
  value.string = text;
  value.type = Value::Type::string;
  if (text == "null" || text == "~" || text.empty() || text == "None") {
    value.type = Value::Type::none;
    return value;
  }
  static constexpr std::string_view kTrue[] = {"true", "True", "TRUE", "yes", "on"};
  static constexpr std::string_view kFalse[] = {"false", "False", "FALSE", "no", "off"};
  const bool yes = std::find(std::begin(kTrue), std::end(kTrue), text) != std::end(kTrue);
  const bool no = std::find(std::begin(kFalse), std::end(kFalse), text) != std::end(kFalse);
  if (yes || no) {
    value.type = Value::Type::boolean;
    value.integer = yes ? 1 : 0;
    return value;
  }
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value.integer);
  if (error == std::errc() && end == text.data() + text.size()) {
    value.type = Value::Type::integer;
    return value;
  }
  char* stop = nullptr;
  value.number = std::strtod(text.c_str(), &stop);
  if (stop != text.c_str() && *stop == '\0') value.type = Value::Type::number;
  return value;
}

namespace {

class YamlReader {
 public:
  YamlReader(const std::string& file, std::vector<ConfigEntry>& out) : file_(file), out_(out) {}

  void read(const YAML::Node& node, const std::string& prefix, int depth) {
    if (depth > kDepth || !node.IsMap()) return;
    for (const auto& item : node) {
      if (!item.first.IsScalar() || out_.size() >= kMaxEntries) continue;
      const std::string key = item.first.Scalar();
      ConfigEntry entry;
      entry.file = file_;
      entry.path = prefix.empty() ? key : prefix + "." + key;
      entry.line = static_cast<std::uint32_t>(item.first.Mark().line + 1);
      entry.column = static_cast<std::uint32_t>(item.first.Mark().column + 1);
      entry.length = static_cast<std::uint32_t>(key.size());
      entry.value = value_of(item.second, depth);
      const std::string path = entry.path;
      out_.push_back(std::move(entry));
      read(item.second, path, depth + 1);
    }
  }

 private:
  Value value_of(const YAML::Node& node, int depth) {
    if (node.IsScalar()) return from_scalar(node.Scalar(), node.Tag() == "!");
    Value value;
    if (node.IsNull()) value.type = Value::Type::none;
    if (!node.IsSequence() || depth > kDepth) return value;
    value.type = Value::Type::list;
    for (const auto& item : node) {
      if (++items_ > kMaxItems) return {};
      value.items.push_back(value_of(item, depth + 1));
    }
    return value;
  }

  std::size_t items_ = 0;
  const std::string& file_;
  std::vector<ConfigEntry>& out_;
};

bool nests_too_deep(const std::string& text) {
  int depth = 0;
  for (const char c : text) {
    if (c == '[' || c == '{') ++depth;
    if (c == ']' || c == '}') --depth;
    if (depth > kMaxNesting) return true;
  }
  // Block nesting shows as indentation.
  std::size_t indent = 0;
  bool at_start = true;
  for (const char c : text) {
    if (c == '\n') {
      at_start = true;
      indent = 0;
    } else if (at_start && (c == ' ' || c == '-' || c == '?' || c == ':')) {
      if (++indent > 4 * kMaxNesting) return true;
    } else {
      at_start = false;
    }
  }
  return false;
}

Value from_toml(const toml::node& node, int depth) {
  Value value;
  if (const auto* text = node.as_string()) {
    value.type = Value::Type::string;
    value.string = text->get();
  } else if (const auto* number = node.as_integer()) {
    value.type = Value::Type::integer;
    value.integer = number->get();
  } else if (const auto* flag = node.as_boolean()) {
    value.type = Value::Type::boolean;
    value.integer = flag->get() ? 1 : 0;
  } else if (const auto* real = node.as_floating_point()) {
    value.type = Value::Type::number;
    value.number = real->get();
  } else if (const auto* items = node.as_array(); items != nullptr && depth < kDepth) {
    value.type = Value::Type::list;
    for (const auto& item : *items) value.items.push_back(from_toml(item, depth + 1));
  }
  return value;
}

void read_table(const std::string& file, const toml::table& table, const std::string& prefix,
                int depth, std::vector<ConfigEntry>& out) {
  if (depth > kDepth) return;
  for (const auto& [key, node] : table) {
    ConfigEntry entry;
    entry.file = file;
    entry.path = prefix.empty() ? std::string(key.str()) : prefix + "." + std::string(key.str());
    entry.line = key.source().begin.line;
    entry.column = key.source().begin.column;
    entry.length = static_cast<std::uint32_t>(key.str().size());
    entry.value = from_toml(node, depth);
    const std::string path = entry.path;
    out.push_back(std::move(entry));
    if (const auto* inner = node.as_table()) read_table(file, *inner, path, depth + 1, out);
  }
}

// The documents between lines of dashes, each after as many empty lines as keep its line numbers.
// One by one, because yaml-cpp's LoadAll never ends on some inputs that are no YAML.
std::vector<std::string> documents_of(const std::string& text) {
  constexpr std::size_t kMost = 32;
  std::vector<std::string> out;
  std::size_t begin = 0;
  std::size_t lines = 0;
  while (begin <= text.size() && out.size() < kMost) {
    const std::size_t next = text.find("\n---", begin);
    const std::size_t end = next == std::string::npos ? text.size() : next + 1;
    const auto from = text.begin() + static_cast<std::ptrdiff_t>(begin);
    const auto to = text.begin() + static_cast<std::ptrdiff_t>(end);
    out.push_back(std::string(lines, '\n') + std::string(from, to));
    lines += static_cast<std::size_t>(std::count(from, to, '\n'));
    if (next == std::string::npos) break;
    begin = end;
  }
  return out;
}

}  // namespace

std::vector<ConfigEntry> read_yaml(const std::string& file, const std::string& text) {
  std::vector<ConfigEntry> out;
  if (nests_too_deep(text)) return out;
  try {
    for (const std::string& document : documents_of(text))
      YamlReader(file, out).read(YAML::Load(document), "", 0);
  } catch (const YAML::Exception&) {
    // A template or a broken file: what was read before stands.
  }
  return out;
}

std::string yaml_mistake(const std::string& text) {
  if (nests_too_deep(text)) return "nests too deep";
  try {
    for (const std::string& document : documents_of(text)) (void)YAML::Load(document);
  } catch (const YAML::Exception& error) {
    return "line " + std::to_string(error.mark.line + 1) + ": " + error.msg;
  }
  return {};
}

std::vector<ConfigEntry> read_toml(const std::string& file, const std::string& text) {
  std::vector<ConfigEntry> out;
  try {
    read_table(file, toml::parse(text), "", 0, out);
  } catch (const toml::parse_error&) {
    // Not TOML after all.
  }
  return out;
}

}  // namespace bench::diagnose
