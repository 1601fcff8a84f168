#include "scenarios/pitfalls/page.hpp"

#include <cstdlib>

namespace bench::pitfalls {
namespace {

// Lines with their text; the page is small, so clarity wins over speed.
std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return lines;
}

std::string trimmed(const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \n");
  if (first == std::string::npos) return {};
  return text.substr(first, text.find_last_not_of(" \n") - first + 1);
}

std::string default_name(std::string_view language) {
  if (language == "python") return "train.py";
  if (language == "sh") return "launch.sh";
  if (language == "yaml") return "config.yaml";
  if (language == "toml") return "config.toml";
  if (language == "json") return "config.json";
  return {};
}

void add_block(PageCase& current, const std::string& fence, std::string body) {
  const std::size_t space = fence.find(' ');
  const std::string language = fence.substr(0, space);
  std::string name = space == std::string::npos ? "" : fence.substr(space + 1);
  if (language == "finding") {
    current.expected = std::move(body);
    return;
  }
  if (language == "launch") {
    current.launch = trimmed(body);
    return;
  }
  if (language == "gpus") {
    current.gpus = std::atoi(body.c_str());
    return;
  }
  if (name.empty()) name = default_name(language);
  if (name.empty()) return;
  if (current.files.empty()) current.script = name;
  current.files[name] = std::move(body);
}

}  // namespace

std::string section(const Rule& rule, std::string_view heading) {
  std::string out;
  bool inside = false;
  for (const std::string& line : lines_of(page_of(rule))) {
    if (line.starts_with("## ")) {
      inside = std::string_view(line).substr(3) == heading;
    } else if (inside) {
      out += line + "\n";
    }
  }
  return trimmed(out);
}

std::string guide(const Rule& rule) {
  const std::string_view page = page_of(rule);
  return std::string(page.substr(0, page.find("\n## Fires")));
}

std::vector<PageCase> cases_of(std::string_view page) {
  std::vector<PageCase> cases;
  bool firing = false;
  bool in_cases = false;
  std::string fence;
  std::string body;
  bool open = false;
  for (const std::string& line : lines_of(page)) {
    if (open) {
      if (line == "```") {
        if (!cases.empty()) add_block(cases.back(), fence, std::move(body));
        body.clear();
        open = false;
      } else {
        body += line + "\n";
      }
    } else if (line.starts_with("## ")) {
      firing = line == "## Fires";
      in_cases = firing || line == "## Stays silent";
    } else if (in_cases && line.starts_with("### ")) {
      cases.push_back({line.substr(4), firing});
    } else if (in_cases && line.starts_with("```")) {
      fence = line.substr(3);
      open = true;
    }
  }
  return cases;
}

}  // namespace bench::pitfalls
