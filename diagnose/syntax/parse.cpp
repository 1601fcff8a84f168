// Text without errors, which is nearly all of it, is parsed by our own parser; what that leaves is
// parsed by tree-sitter.
#include "diagnose/syntax/parse_memory.hpp"
#include "diagnose/syntax/tree_builder.hpp"

#include <cstring>
#include <memory>

namespace bench::diagnose {
namespace {

using std::chrono::microseconds;

struct ParserDeleter {
  void operator()(TSParser* parser) const { ts_parser_delete(parser); }
};
struct TreeDeleter {
  void operator()(TSTree* tree) const { ts_tree_delete(tree); }
};

TSParser* thread_parser() {
  use_parse_memory();
  thread_local const std::unique_ptr<TSParser, ParserDeleter> parser = [] {
    TSParser* made = ts_parser_new();
    ts_parser_set_language(made, tree_sitter_python());
    return std::unique_ptr<TSParser, ParserDeleter>(made);
  }();
  return parser.get();
}

// False when the time is up.
bool parse_by_library(std::string_view source, microseconds limit, TreeBuilder builder) {
  ts_parser_set_timeout_micros(thread_parser(), static_cast<std::uint64_t>(limit.count()));
  const std::unique_ptr<TSTree, TreeDeleter> parsed(ts_parser_parse_string(
      thread_parser(), nullptr, source.data(), static_cast<std::uint32_t>(source.size())));
  if (parsed)
    builder.build(parsed.get());
  else
    ts_parser_reset(thread_parser());
  return parsed != nullptr;
}

PlainParser::Outcome parse_plain(std::string_view source, microseconds limit, TreeBuilder builder) {
  constexpr std::uint32_t kKnownTables = 14;  // the layout of tables that ParseTables reads
  if (tree_sitter_python()->version != kKnownTables) return PlainParser::Outcome::not_plain;
  constexpr std::size_t kMostKept = 1U << 20;  // pieces; a large file's memory is given back
  thread_local ParseTables tables(*tree_sitter_python());
  thread_local PlainTree parsed;
  const auto outcome = PlainParser(*tree_sitter_python(), tables, source, parsed).parse(limit);
  if (outcome == PlainParser::Outcome::parsed) builder.build(parsed);
  if (parsed.pieces.capacity() > kMostKept) parsed = {};
  return outcome;
}

// False when the time is up.
bool parse_any(std::string_view source, microseconds limit, const TreeBuilder& builder) {
  const auto begin = std::chrono::steady_clock::now();
  const auto outcome = parse_plain(source, limit, builder);
  if (outcome != PlainParser::Outcome::not_plain) return outcome == PlainParser::Outcome::parsed;
  const auto taken =
      std::chrono::duration_cast<microseconds>(std::chrono::steady_clock::now() - begin);
  const bool is_limited = limit.count() > 0;
  if (is_limited && taken >= limit) return false;
  return parse_by_library(source, is_limited ? limit - taken : limit, builder);
}

std::vector<std::uint32_t> line_starts(std::string_view source) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  std::vector<std::uint32_t> out;
  out.push_back(source.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0);
  const char* data = source.data();
  const char* end = data + source.size();
  for (const char* at = data;
       (at = static_cast<const char*>(std::memchr(at, '\n', static_cast<std::size_t>(end - at))));)
    out.push_back(static_cast<std::uint32_t>(++at - data));
  return out;
}

}  // namespace

SyntaxTree TreeBuilder::parsed(std::string source, bool by_library, microseconds limit) {
  SyntaxTree tree;
  tree.source_ = std::move(source);
  tree.trigrams_ = Trigrams(tree.source_);
  tree.line_starts_ = line_starts(tree.source_);
  tree.nodes_.reserve(tree.source_.size() / 6 + 16);
  const TreeBuilder builder(tree);
  tree.timed_out_ = !(by_library ? parse_by_library(tree.source_, limit, builder)
                                 : parse_any(tree.source_, limit, builder));
  if (tree.nodes_.empty()) {
    tree.has_errors_ = true;
    Node root;
    root.kind = Kind::module;
    root.last = 1;
    tree.nodes_.push_back(root);
  }
  return tree;
}

SyntaxTree TreeBuilder::by_library(std::string source) {
  return parsed(std::move(source), true, SyntaxTree::kParseLimit);
}

SyntaxTree SyntaxTree::parse(std::string source, microseconds limit) {
  return TreeBuilder::parsed(std::move(source), false, limit);
}

}  // namespace bench::diagnose
