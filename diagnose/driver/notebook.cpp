#include "diagnose/driver/notebook.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace bench::diagnose {
namespace {

using Json = nlohmann::json;

// The lines of a cell: a list of strings, or one string.
std::vector<std::string> cell_lines(const Json& cell) {
  std::string joined;
  const auto source = cell.find("source");
  if (source == cell.end()) return {};
  if (source->is_string()) {
    joined = source->get<std::string>();
  } else if (source->is_array()) {
    for (const auto& part : *source)
      if (part.is_string()) joined += part.get<std::string>();
  }
  std::vector<std::string> lines;
  std::size_t start = 0;
  while (start < joined.size()) {
    const std::size_t end = std::min(joined.find('\n', start), joined.size());
    lines.push_back(joined.substr(start, end - start));
    start = end + 1;
  }
  return lines;
}

bool is_magic(std::string_view line) {
  const std::size_t first = line.find_first_not_of(" \t");
  return first != std::string_view::npos &&
         (line[first] == '%' || line[first] == '!' || line[first] == '?');
}

// `if colab: !pip install x`: what stands for an indented magic, which may be all that its block
// has.
std::string stand_in(std::string_view line) {
  const std::size_t first = line.find_first_not_of(" \t");
  const bool has_name = line[first] == '!' ||
                        (first + 1 < line.size() && line[first] == '%' && line[first + 1] != ' ');
  return first > 0 && has_name ? std::string(line.substr(0, first)) + "pass" : std::string();
}

// Finds where the lines stand in the file, by searching for their JSON spelling in order.
class LineFinder {
 public:
  explicit LineFinder(std::string_view json) : json_(json) {}

  std::uint32_t find(const std::string& line) {
    std::string spelling = Json(line).dump(-1, ' ', false, Json::error_handler_t::replace);
    spelling.pop_back();  // the closing quote may follow a \n
    const std::size_t at = line.empty() ? std::string_view::npos : json_.find(spelling, from_);
    if (at != std::string_view::npos) {
      line_ += static_cast<std::uint32_t>(
          std::count(json_.begin() + static_cast<std::ptrdiff_t>(from_),
                     json_.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
      from_ = at;
    }
    return line_;
  }

 private:
  std::string_view json_;
  std::size_t from_ = 0;
  std::uint32_t line_ = 1;
};

}  // namespace

NotebookSource notebook_source(std::string_view json) {
  NotebookSource out;
  const Json notebook = Json::parse(json, nullptr, false);
  if (!notebook.is_object()) return out;
  const auto cells = notebook.find("cells");
  if (cells == notebook.end() || !cells->is_array()) return out;
  LineFinder finder(json);
  for (const auto& cell : *cells) {
    if (!cell.is_object() || cell.value("cell_type", Json()) != "code") continue;
    const std::vector<std::string> lines = cell_lines(cell);
    const bool foreign = !lines.empty() && lines.front().starts_with("%%") &&
                         !lines.front().starts_with("%%time") &&
                         !lines.front().starts_with("%%capture");
    for (const std::string& line : lines) {
      out.file_lines.push_back(finder.find(line));
      if (!foreign) out.text += is_magic(line) ? stand_in(line) : line;
      out.text += '\n';
    }
  }
  return out;
}

}  // namespace bench::diagnose
