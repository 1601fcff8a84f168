#include "diagnose/driver/import_texts.hpp"

#include <algorithm>
#include <cctype>

namespace bench::diagnose {

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> out;
  while (true) {
    const std::size_t end = text.find(separator);
    const std::string_view part = text.substr(0, end);
    if (!part.empty()) out.emplace_back(part);
    if (end == std::string_view::npos) return out;
    text.remove_prefix(end + 1);
  }
}

namespace {

std::string_view trimmed(std::string_view text) {
  const auto is_space = [](char each) {
    return std::isspace(static_cast<unsigned char>(each)) != 0 || each == '(' || each == ')' ||
           each == '\\';
  };
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

// loop, train for "loop as l, train".
std::vector<std::string> names_in(std::string_view list) {
  std::vector<std::string> out;
  for (const std::string& each : split(list, ',')) {
    std::string_view name = trimmed(each);
    name = name.substr(0, name.find_first_of(" \t\r\n#;"));
    if (!name.empty()) out.emplace_back(name);
  }
  return out;
}

// models.*.trainer for import_module('models.%s.trainer' % name), and f"models.{name}.trainer".
std::string named_in_text(std::string_view line) {
  line.remove_prefix(line.find("import_module(") + 14);
  const std::size_t open = line.find_first_of("'\"");
  if (open == std::string_view::npos) return {};
  const std::size_t close = line.find(line[open], open + 1);
  if (close == std::string_view::npos) return {};
  std::string out;
  for (const std::string& part : split(line.substr(open + 1, close - open - 1), '.'))
    out += (out.empty() ? "" : ".") + (part.find_first_of("%{") == std::string::npos ? part : "*");
  return out;
}

}  // namespace

std::vector<std::string> imports_in(std::string_view text) {
  std::vector<std::string> out;
  const bool names_in_texts = text.find("import_module(") != std::string_view::npos;
  for (std::size_t begin = 0; begin < text.size();) {
    std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = trimmed(text.substr(begin, end - begin));
    if (line.starts_with("import ")) {
      for (std::string& name : names_in(line.substr(7))) out.push_back(std::move(name));
    } else if (line.starts_with("from ") && line.find(" import") != std::string_view::npos) {
      const std::size_t word = line.find(" import");
      const std::string from(trimmed(line.substr(5, word - 5)));
      const std::size_t list = text.find(" import", begin) + 7;
      if (const std::size_t open = text.find_first_not_of(" \t", list);
          open < text.size() && text[open] == '(')
        end = std::min(text.find(')', open), text.size());
      out.push_back(from);
      for (const std::string& name : names_in(text.substr(list, end - list)))
        out.push_back(from + (from.ends_with('.') ? "" : ".") + name);
    } else if (names_in_texts && line.find("import_module(") != std::string_view::npos) {
      if (std::string name = named_in_text(line); !name.empty()) out.push_back(std::move(name));
    }
    begin = end + 1;
  }
  return out;
}

}  // namespace bench::diagnose
