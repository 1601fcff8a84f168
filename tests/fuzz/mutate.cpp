#include "tests/fuzz/mutate.hpp"

#include <algorithm>
#include <sstream>
#include <string_view>

namespace bench::diagnose {
namespace {

// Words that lead into the rules and characters that unbalance the syntax.
constexpr std::string_view kTokens[] = {
    "(",       ")",      "[",          "\"\"\"",     "'",     ":",           "\n",
    "    ",    "\t",     "\\\n",       "lambda x: ", "self.", "rank == 0",   "f\"{",
    "**",      "*",      "DDP(model)", "model",      "def ",  "class A(A):", "import ",
    "if ",     "else:",  "\\x00x",     "\xff",       "\xc2",  "=",           "x = x\n",
    "return ", "yield ", "async ",     "print 'x'"};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line + "\n");
  return lines;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line;
  return text;
}

}  // namespace

std::string Mutator::bytes(std::size_t most) {
  std::string out(below(most), ' ');
  for (char& c : out) c = static_cast<char>(below(8) == 0 ? below(256) : 32 + below(96));
  return out;
}

std::string Mutator::mutate(std::string text, const std::string& other) {
  for (std::size_t changes = 1 + below(8); changes > 0; --changes) {
    const std::size_t at = below(text.size() + 1);
    switch (below(5)) {
      case 0:
        if (at < text.size()) text[at] = static_cast<char>(below(256));
        break;
      case 1:
        text.insert(at, kTokens[below(std::size(kTokens))]);
        break;
      case 2:
        text.erase(at, below(40));
        break;
      case 3: {  // a line of this script or the other moves
        auto lines = lines_of(text);
        auto source = lines_of(below(2) == 0 ? text : other);
        if (lines.empty() || source.empty()) break;
        lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(below(lines.size())),
                     source[below(source.size())]);
        text = joined(lines);
        break;
      }
      default: {  // an indentation changes
        auto lines = lines_of(text);
        if (lines.empty()) break;
        std::string& line = lines[below(lines.size())];
        line = below(2) == 0 ? "    " + line : line.substr(std::min<std::size_t>(4, line.size()));
        text = joined(lines);
      }
    }
  }
  return text;
}

}  // namespace bench::diagnose
