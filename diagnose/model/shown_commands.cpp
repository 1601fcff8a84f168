#include "diagnose/model/shown_commands.hpp"

#include "diagnose/launch/launch_documents.hpp"

#include <algorithm>

namespace bench::diagnose {
namespace {

// The source with everything blanked but what is there to be read, so that lines keep their place.
class ReadableText {
 public:
  explicit ReadableText(std::string_view source) : source_(source), text_(source.size(), ' ') {
    for (std::size_t at = source.find('\n'); at != std::string_view::npos;
         at = source.find('\n', at + 1))
      text_[at] = '\n';
  }

  void keep(std::size_t begin, std::size_t end) {
    std::copy(source_.begin() + static_cast<std::ptrdiff_t>(begin),
              source_.begin() + static_cast<std::ptrdiff_t>(end),
              text_.begin() + static_cast<std::ptrdiff_t>(begin));
    kept_ = true;
  }

  bool is_empty() const { return !kept_; }
  const std::string& text() const { return text_; }

 private:
  std::string_view source_;
  std::string text_;
  bool kept_ = false;
};

// Without its quotes and what stands before them.
void keep_string(const SyntaxTree& tree, NodeId string, ReadableText& readable) {
  const std::string_view text = tree.text(string);
  const std::size_t quote = text.find_first_of("\"'");
  if (quote == std::string_view::npos) return;
  const bool is_long = text.substr(quote).starts_with(std::string(3, text[quote]));
  const std::size_t width = is_long ? 3 : 1;
  if (text.size() < quote + 2 * width) return;
  readable.keep(tree[string].begin + quote + width, tree[string].end - width);
}

// Without the marks before it: what is behind them is the command, wherever the comment stands.
void keep_comment(const SyntaxTree& tree, const SyntaxTree::Comment& comment,
                  ReadableText& readable) {
  const auto text = tree.source().substr(comment.begin, comment.end - comment.begin);
  const std::size_t first = std::min(text.find_first_not_of("# "), text.size());
  readable.keep(comment.begin + first, comment.end);
}

}  // namespace

std::vector<LaunchLine> shown_commands(const Module& script) {
  const SyntaxTree& tree = script.tree();
  if (!may_hold_launches(tree.source())) return {};
  ReadableText readable(tree.source());
  // The docstring, and strings further down that are there to be read.
  for (NodeId at = tree[0].first_child; at != kNoNode; at = tree[at].next_sibling)
    if (tree[at].kind == Kind::expression_statement &&
        tree[tree[at].first_child].kind == Kind::string)
      keep_string(tree, tree[at].first_child, readable);
  for (const auto& comment : tree.comments()) keep_comment(tree, comment, readable);
  if (readable.is_empty()) return {};
  auto launches = read_launch_document("README.md", readable.text());
  for (LaunchLine& launch : launches) launch.file = script.path() + std::string(kShownText);
  return launches;
}

std::vector<LaunchLine> own_shown_commands(const Module& script) {
  const std::string& path = script.path();
  const std::string_view name = std::string_view(path).substr(path.rfind('/') + 1);
  auto launches = shown_commands(script);
  std::erase_if(launches, [&](const LaunchLine& launch) { return launch.script_name() != name; });
  return launches;
}

}  // namespace bench::diagnose
