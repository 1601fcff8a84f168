#include "diagnose/model/shown_commands.hpp"

#include "diagnose/launch/launch_documents.hpp"

#include <algorithm>

namespace bench::diagnose {
namespace {

// What of the source is there to be read, line by line, so that commands keep their lines.
class ReadableText {
 public:
  explicit ReadableText(const SyntaxTree& tree)
      : tree_(tree), lines_(tree.line_count()), shifts_(tree.line_count()) {}

  // As it stands, or from the margin on: indentation in front of a comment says nothing.
  void keep(std::size_t begin, std::size_t end, bool from_margin) {
    const std::string_view source = tree_.source();
    while (begin < end) {
      const std::size_t stop = std::min(source.find('\n', begin), end);
      const std::size_t index = tree_.line_at(static_cast<std::uint32_t>(begin)) - 1;
      const std::size_t start = begin == 0 ? 0 : source.rfind('\n', begin - 1) + 1;
      std::string& line = lines_[index];
      if (!from_margin) line.resize(std::max(line.size(), begin - start), ' ');
      if (line.empty() && from_margin) shifts_[index] = static_cast<std::uint32_t>(begin - start);
      line += source.substr(begin, stop - begin);
      begin = stop + 1;
    }
  }

  std::string text() const {
    std::string out;
    for (const std::string& line : lines_) out += line + '\n';
    return out;
  }

  // Where the word stands in the source.
  void put_back(LaunchWord& word) const {
    if (word.line >= 1 && word.line <= shifts_.size()) word.column += shifts_[word.line - 1];
  }

  // In a plain string `\\` at the end of a line is one backslash of the shell.
  void undo_escapes() {
    for (std::string& line : lines_)
      if (line.ends_with("\\\\")) line.pop_back();
  }

 private:
  const SyntaxTree& tree_;
  std::vector<std::string> lines_;
  std::vector<std::uint32_t> shifts_;
};

// Without its quotes and what stands before them.
void keep_string(const SyntaxTree& tree, NodeId string, ReadableText& readable) {
  const std::string_view text = tree.text(string);
  const std::size_t quote = text.find_first_of("\"'");
  if (quote == std::string_view::npos) return;
  const bool is_long = text.substr(quote).starts_with(std::string(3, text[quote]));
  const std::size_t width = is_long ? 3 : 1;
  if (text.size() < quote + 2 * width) return;
  readable.keep(tree[string].begin + quote + width, tree[string].end - width, false);
}

// Without the marks before it: what is behind them is the command, wherever the comment stands.
void keep_comment(const SyntaxTree& tree, const SyntaxTree::Comment& comment,
                  ReadableText& readable) {
  const auto text = tree.source().substr(comment.begin, comment.end - comment.begin);
  const std::size_t first = std::min(text.find_first_not_of("# "), text.size());
  readable.keep(comment.begin + first, comment.end, true);
}

void put_back(const ReadableText& readable, LaunchLine& launch) {
  readable.put_back(launch.command);
  readable.put_back(launch.script);
  for (auto* words : {&launch.environment, &launch.flags, &launch.job, &launch.not_exported})
    for (auto& [name, word] : *words) readable.put_back(word);
  for (LaunchWord& word : launch.script_arguments) readable.put_back(word);
}

}  // namespace

std::vector<LaunchLine> shown_commands(const Module& script) {
  const SyntaxTree& tree = script.tree();
  if (!may_hold_launches(tree.source())) return {};
  ReadableText readable(tree);
  // The docstring, and strings further down that are there to be read.
  for (NodeId at = tree[0].first_child; at != kNoNode; at = tree[at].next_sibling)
    if (tree[at].kind == Kind::expression_statement &&
        tree[tree[at].first_child].kind == Kind::string)
      keep_string(tree, tree[at].first_child, readable);
  readable.undo_escapes();
  for (const auto& comment : tree.comments()) keep_comment(tree, comment, readable);
  auto launches = read_launch_document("README.md", readable.text());
  for (LaunchLine& launch : launches) {
    launch.file = script.path() + std::string(kShownText);
    put_back(readable, launch);
  }
  return launches;
}

std::string_view script_file(const Module& script) {
  const std::string_view path = script.path();
  return path.substr(path.rfind('/') + 1);
}

std::vector<LaunchLine> own_shown_commands(const Module& script) {
  const std::string_view name = script_file(script);
  // Without a word of its name, train for `train.py` or `-m package.train`, there is none.
  if (script.tree().source().find(name.substr(0, name.rfind('.'))) == std::string_view::npos)
    return {};
  auto launches = shown_commands(script);
  std::erase_if(launches, [&](const LaunchLine& launch) { return launch.script_name() != name; });
  return launches;
}

}  // namespace bench::diagnose
