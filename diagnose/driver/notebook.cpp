#include "diagnose/driver/notebook.hpp"

#include "diagnose/driver/notebook_cells.hpp"

#include <algorithm>
#include <cctype>
#include <utility>

namespace bench::diagnose {
namespace {

// gdown.download? asks for help.
bool asks_for_help(std::string_view line) {
  if (!line.ends_with('?')) return false;
  while (line.ends_with('?')) line.remove_suffix(1);
  return !line.empty() && std::all_of(line.begin(), line.end(), [](unsigned char c) {
    return std::isalnum(c) || c == '_' || c == '.';
  });
}

bool is_magic(std::string_view line) {
  const std::size_t first = line.find_first_not_of(" \t");
  return first != std::string_view::npos &&
         (line[first] == '%' || line[first] == '!' || line[first] == '?' || asks_for_help(line));
}

// files = !ls data, out = %time f(): where the command begins; npos for any other line.
std::size_t assigned_magic(std::string_view line) {
  const std::size_t equals = line.find('=');
  if (equals == std::string_view::npos) return equals;
  const std::string_view names = line.substr(0, equals);
  const bool only_names = std::all_of(names.begin(), names.end(), [](unsigned char c) {
    return std::isalnum(c) || c == '_' || c == ',' || c == ' ' || c == '\t';
  });
  const std::size_t at = line.find_first_not_of(" \t", equals + 1);
  if (!only_names || at == std::string_view::npos || at + 1 >= line.size())
    return std::string_view::npos;
  const bool is_command = line[at] == '!' && line[at + 1] != '=';
  const bool is_named = line[at] == '%' && std::isalpha(static_cast<unsigned char>(line[at + 1]));
  return is_command || is_named ? at : std::string_view::npos;
}

// `if colab: !pip install x`: what stands for an indented magic, which may be all that its block
// has.
std::string stand_in(std::string_view line) {
  const std::size_t first = line.find_first_not_of(" \t");
  const bool has_name = line[first] == '!' ||
                        (first + 1 < line.size() && line[first] == '%' && line[first + 1] != ' ');
  return first > 0 && has_name ? std::string(line.substr(0, first)) + "pass" : std::string();
}

// {name} in a command is Python's, as $name is.
std::string with_variables(std::string_view command) {
  std::string out;
  for (const char c : command) {
    if (c == '{' && !out.ends_with('$')) out += '$';
    out += c;
  }
  return out;
}

// The command that a line is for a shell; empty for none.
std::string command_of(std::string_view line) {
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  for (const auto& [magic, command] :
       {std::pair<std::string_view, std::string_view>{"%run ", "python "},
        {"%cd ", "cd "},
        {"%env ", "export "},
        {"%sh ", ""}})
    if (line.starts_with(magic))
      return std::string(command) + with_variables(line.substr(magic.size()));
  if (!line.starts_with("!") || line.starts_with("!cd ") || line.starts_with("!export ")) return {};
  return with_variables(line.substr(line.starts_with("!!") ? 2 : 1));
}

// What a cell is for: Python, a shell, or something else that is named in its first line.
enum class CellKind : std::uint8_t { python, shell, foreign };

CellKind kind_of(const std::vector<CellLine>& lines) {
  const auto begins = [&](std::string_view word) { return lines.front().text.starts_with(word); };
  if (lines.empty() || !begins("%%") || begins("%%time") || begins("%%capture"))
    return CellKind::python;
  return begins("%%bash") || begins("%%sh") || begins("%%script bash") || begins("%%cmd")
             ? CellKind::shell
             : CellKind::foreign;
}

// Lines of one cell, each of which becomes one line of Python and one of commands.
class CellReader {
 public:
  CellReader(CellKind kind, NotebookSource& out) : kind_(kind), out_(out) {}

  void add(const std::string& line) {
    const bool is_first = std::exchange(is_first_, false);
    if (kind_ == CellKind::shell && !is_first) out_.commands += line;
    if (kind_ == CellKind::python) add_python(line);
    out_.text += '\n';
    out_.commands += '\n';
  }

 private:
  void add_python(const std::string& line) {
    if (continues_) {  // !torchrun \ and its flags on lines of their own
      out_.commands += with_variables(line);
      continues_ = line.ends_with('\\');
    } else if (is_magic(line)) {
      out_.text += stand_in(line);
      out_.commands += command_of(line);
      continues_ = line.ends_with('\\');
    } else if (const std::size_t at = assigned_magic(line); at != std::string::npos) {
      out_.text += line.substr(0, at) + "get_ipython()";
      out_.commands += command_of(std::string_view(line).substr(at));
      continues_ = line.ends_with('\\');
    } else {
      out_.text += line;
    }
  }

  CellKind kind_;
  NotebookSource& out_;
  bool is_first_ = true;
  bool continues_ = false;
};

}  // namespace

NotebookSource notebook_source(std::string_view json) {
  NotebookSource out;
  std::uint32_t number = 0;
  for (const NotebookCell& cell : notebook_cells(json)) {
    ++number;
    if (!cell.is_code) continue;
    CellReader reader(kind_of(cell.lines), out);
    std::uint32_t in_cell = 0;
    for (const CellLine& line : cell.lines) {
      out.lines.push_back({line.in_file, number, ++in_cell});
      reader.add(line.text);
    }
  }
  return out;
}

NotebookLine NotebookSource::line(std::uint32_t number) const {
  if (lines.empty()) return {};
  return lines[std::min<std::size_t>(std::max(number, 1U), lines.size()) - 1];
}

std::string place_in_notebook(const NotebookLine& line) {
  return "cell " + std::to_string(line.cell) + ", line " + std::to_string(line.in_cell);
}

}  // namespace bench::diagnose
