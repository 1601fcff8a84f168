#include "diagnose/syntax/tree.hpp"

#include <algorithm>

namespace bench::diagnose {

NodeId SyntaxTree::child_at(NodeId id, std::size_t index) const {
  if (id >= nodes_.size()) return kNoNode;
  NodeId at = nodes_[id].first_child;
  while (at != kNoNode && index-- > 0) at = nodes_[at].next_sibling;
  return at;
}

std::size_t SyntaxTree::child_count(NodeId id) const {
  std::size_t count = 0;
  if (id >= nodes_.size()) return 0;
  for (NodeId at = nodes_[id].first_child; at != kNoNode; at = nodes_[at].next_sibling) ++count;
  return count;
}

NodeId SyntaxTree::ancestor(NodeId id, Kind kind) const {
  if (id >= nodes_.size()) return kNoNode;
  for (NodeId at = nodes_[id].parent; at != kNoNode; at = nodes_[at].parent)
    if (nodes_[at].kind == kind) return at;
  return kNoNode;
}

std::optional<std::string> SyntaxTree::string_value(NodeId id) const {
  if (id >= nodes_.size()) return std::nullopt;
  const Node& node = nodes_[id];
  if (node.kind == Kind::concatenated_string) {
    std::string joined;
    for (NodeId at = node.first_child; at != kNoNode; at = nodes_[at].next_sibling) {
      auto part = string_value(at);
      if (!part) return std::nullopt;
      joined += *part;
    }
    return joined;
  }
  if (node.kind != Kind::string || node.first_child != kNoNode) return std::nullopt;
  std::string_view body = text(id);
  const std::size_t quote = body.find_first_of("\"'");
  if (quote == std::string_view::npos) return std::nullopt;
  body.remove_prefix(quote);
  const bool triple = body.size() >= 6 && body[1] == body[0] && body[2] == body[0];
  const std::size_t width = triple ? 3 : 1;
  if (body.size() < 2 * width) return std::nullopt;
  return std::string(body.substr(width, body.size() - 2 * width));
}

std::uint32_t SyntaxTree::line_at(std::uint32_t byte) const {
  const auto after = std::upper_bound(line_starts_.begin(), line_starts_.end(), byte);
  // A byte order mark stands before the first line.
  return std::max<std::uint32_t>(1, static_cast<std::uint32_t>(after - line_starts_.begin()));
}

std::string_view SyntaxTree::line_text(std::uint32_t line) const {
  if (line == 0 || line > line_starts_.size()) return {};
  const std::uint32_t begin = line_starts_[line - 1];
  std::string_view rest = std::string_view(source_).substr(begin);
  rest = rest.substr(0, rest.find('\n'));
  if (!rest.empty() && rest.back() == '\r') rest.remove_suffix(1);
  return rest;
}

Position SyntaxTree::position(std::uint32_t byte) const {
  const std::uint32_t line = line_at(byte);
  std::uint32_t column = 1;
  for (std::uint32_t at = line_starts_[line - 1]; at < byte && at < source_.size(); ++at)
    if ((static_cast<unsigned char>(source_[at]) & 0xC0U) != 0x80U) ++column;  // UTF-8 tail bytes
  return {line, column};
}

std::uint32_t utf16_column(std::string_view line, std::uint32_t column) {
  constexpr unsigned char kFourBytes = 0xF0;  // begins what is above U+FFFF: two code units
  std::uint32_t units = 1;
  std::uint32_t character = 0;
  for (const char c : line) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte & 0xC0U) == 0x80U) continue;
    if (++character >= column) return units;
    units += byte >= kFourBytes ? 2 : 1;
  }
  return units + (column - std::min(column, character + 1));
}

}  // namespace bench::diagnose
