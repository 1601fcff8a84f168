// From tree-sitter's tree to ours, in one pass with a cursor and an explicit stack, so that deeply
// nested input costs memory and never the call stack.
#include "diagnose/syntax/parse_memory.hpp"
#include "diagnose/syntax/tree.hpp"

#include <tree_sitter/api.h>

#include <array>
#include <cstring>
#include <memory>
#include <unordered_map>

extern "C" const TSLanguage* tree_sitter_python();

namespace bench::diagnose {
namespace {

enum class Treatment : std::uint8_t {
  keep,      // becomes a node
  leaf,      // becomes a node; has no parts
  elide,     // its children take its place
  skip,      // neither it nor what is in it
  comment,   // goes to the list of comments
  string,    // a node whose children are the expressions in its holes
  op_token,  // an operator: noted on the parent
};

struct Meaning {
  Treatment treatment = Treatment::skip;
  Kind kind = Kind::other;
  Op op = Op::none;
};

struct KindName {
  const char* name;
  Kind kind;
};

constexpr KindName kKinds[] = {
    {"module", Kind::module},
    {"import_statement", Kind::import_statement},
    {"import_from_statement", Kind::import_from},
    {"future_import_statement", Kind::other},
    {"aliased_import", Kind::aliased_import},
    {"dotted_name", Kind::dotted_name},
    {"relative_import", Kind::relative_import},
    {"wildcard_import", Kind::wildcard_import},
    {"expression_statement", Kind::expression_statement},
    {"assignment", Kind::assignment},
    {"augmented_assignment", Kind::augmented_assignment},
    {"named_expression", Kind::named_expression},
    {"call", Kind::call},
    {"argument_list", Kind::argument_list},
    {"generator_expression", Kind::comprehension},
    {"keyword_argument", Kind::keyword_argument},
    {"list_splat", Kind::list_splat},
    {"dictionary_splat", Kind::dictionary_splat},
    {"identifier", Kind::identifier},
    {"keyword_identifier", Kind::identifier},
    {"attribute", Kind::attribute},
    {"subscript", Kind::subscript},
    {"slice", Kind::slice},
    {"list", Kind::list},
    {"tuple", Kind::tuple},
    {"expression_list", Kind::tuple},
    {"pattern_list", Kind::tuple},
    {"tuple_pattern", Kind::tuple},
    {"list_pattern", Kind::tuple},
    {"dictionary", Kind::dictionary},
    {"set", Kind::set},
    {"pair", Kind::pair},
    {"concatenated_string", Kind::concatenated_string},
    {"integer", Kind::integer},
    {"float", Kind::floating},
    {"true", Kind::true_literal},
    {"false", Kind::false_literal},
    {"none", Kind::none_literal},
    {"unary_operator", Kind::unary},
    {"not_operator", Kind::not_expression},
    {"boolean_operator", Kind::boolean},
    {"comparison_operator", Kind::comparison},
    {"binary_operator", Kind::binary},
    {"conditional_expression", Kind::conditional},
    {"lambda", Kind::lambda},
    {"list_comprehension", Kind::comprehension},
    {"set_comprehension", Kind::comprehension},
    {"dictionary_comprehension", Kind::comprehension},
    {"for_in_clause", Kind::for_in_clause},
    {"if_clause", Kind::if_clause},
    {"function_definition", Kind::function},
    {"class_definition", Kind::class_definition},
    {"decorated_definition", Kind::decorated},
    {"decorator", Kind::decorator},
    {"parameters", Kind::parameters},
    {"lambda_parameters", Kind::parameters},
    {"default_parameter", Kind::default_parameter},
    {"typed_default_parameter", Kind::default_parameter},
    {"typed_parameter", Kind::typed_parameter},
    {"list_splat_pattern", Kind::list_splat_parameter},
    {"dictionary_splat_pattern", Kind::dictionary_splat_parameter},
    {"block", Kind::block},
    {"if_statement", Kind::if_statement},
    {"elif_clause", Kind::elif_clause},
    {"else_clause", Kind::else_clause},
    {"for_statement", Kind::for_statement},
    {"while_statement", Kind::while_statement},
    {"with_statement", Kind::with_statement},
    {"with_item", Kind::with_item},
    {"as_pattern", Kind::as_pattern},
    {"try_statement", Kind::try_statement},
    {"except_clause", Kind::except_clause},
    {"except_group_clause", Kind::except_clause},
    {"finally_clause", Kind::finally_clause},
    {"return_statement", Kind::return_statement},
    {"raise_statement", Kind::raise_statement},
    {"break_statement", Kind::break_statement},
    {"continue_statement", Kind::continue_statement},
    {"delete_statement", Kind::delete_statement},
    {"assert_statement", Kind::assert_statement},
    {"print_statement", Kind::print_statement},
    {"yield", Kind::yield_expression},
    {"ERROR", Kind::error},
};

struct OpName {
  const char* token;
  Op op;
};

constexpr OpName kOps[] = {
    {"+", Op::add},
    {"-", Op::subtract},
    {"*", Op::multiply},
    {"/", Op::divide},
    {"//", Op::floor_divide},
    {"%", Op::modulo},
    {"**", Op::power},
    {"==", Op::equal},
    {"!=", Op::not_equal},
    {"<>", Op::not_equal},
    {"<", Op::less},
    {"<=", Op::less_equal},
    {">", Op::greater},
    {">=", Op::greater_equal},
    {"in", Op::in},
    {"not in", Op::not_in},
    {"is", Op::is},
    {"is not", Op::is_not},
    {"and", Op::logical_and},
    {"or", Op::logical_or},
    {"&", Op::bit_and},
    {"|", Op::bit_or},
    {"+=", Op::add},
    {"-=", Op::subtract},
    {"*=", Op::multiply},
    {"/=", Op::divide},
    {"//=", Op::floor_divide},
    {"%=", Op::modulo},
};

struct FieldName {
  const char* name;
  Field field;
};

constexpr FieldName kFields[] = {
    {"alias", Field::alias},
    {"alternative", Field::alternative},
    {"argument", Field::argument},
    {"arguments", Field::arguments},
    {"attribute", Field::attribute},
    {"body", Field::body},
    {"condition", Field::condition},
    {"consequence", Field::consequence},
    {"function", Field::function},
    {"key", Field::key},
    {"left", Field::left},
    {"module_name", Field::module_name},
    {"name", Field::name},
    {"object", Field::object},
    {"parameters", Field::parameters},
    {"right", Field::right},
    {"subscript", Field::subscript},
    {"superclasses", Field::superclasses},
    {"value", Field::value},
};

// What every symbol and field number of the grammar means to us; made once.
struct Grammar {
  std::vector<Meaning> meanings;
  std::vector<Field> fields;
  TSFieldId type_field;

  Grammar() {
    const TSLanguage* language = tree_sitter_python();
    std::unordered_map<std::string_view, Meaning> by_name;
    for (const auto& entry : kKinds) by_name[entry.name] = {Treatment::keep, entry.kind, Op::none};
    for (const char* name : {"identifier", "integer", "float", "true", "false", "none"})
      by_name[name].treatment = Treatment::leaf;
    for (const char* name : {"parenthesized_expression", "await", "with_clause", "interpolation",
                             "as_pattern_target", "case_clause", "match_statement"})
      by_name[name] = {Treatment::elide, Kind::other, Op::none};
    for (const char* name :
         {"string_start", "string_content", "string_end", "escape_sequence", "escape_interpolation",
          "format_specifier", "type_conversion", "line_continuation", "type"})
      by_name[name] = {Treatment::skip, Kind::other, Op::none};
    by_name["string"] = {Treatment::string, Kind::string, Op::none};
    by_name["comment"] = {Treatment::comment, Kind::other, Op::none};
    std::unordered_map<std::string_view, Op> ops;
    for (const auto& entry : kOps) ops[entry.token] = entry.op;

    const std::uint32_t symbol_count = ts_language_symbol_count(language);
    meanings.resize(symbol_count);
    for (TSSymbol symbol = 0; symbol < symbol_count; ++symbol) {
      const std::string_view name = ts_language_symbol_name(language, symbol);
      if (ts_language_symbol_type(language, symbol) == TSSymbolTypeRegular) {
        const auto known = by_name.find(name);
        meanings[symbol] = known == by_name.end() ? Meaning{Treatment::keep, Kind::other, Op::none}
                                                  : known->second;
      } else if (const auto op = ops.find(name); op != ops.end()) {
        meanings[symbol] = {Treatment::op_token, Kind::other, op->second};
      }
    }
    fields.resize(ts_language_field_count(language) + 1, Field::none);
    for (const auto& entry : kFields)
      fields[ts_language_field_id_for_name(
          language, entry.name, static_cast<std::uint32_t>(std::strlen(entry.name)))] = entry.field;
    type_field = ts_language_field_id_for_name(language, "type", 4);
  }
};

const Grammar& grammar() {
  static const Grammar instance;
  return instance;
}

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

}  // namespace

class TreeBuilder {
 public:
  explicit TreeBuilder(SyntaxTree& tree) : tree_(tree) {}

  void build(const TSTree* parsed) {
    tree_.nodes_.reserve(tree_.source_.size() / 6 + 16);
    TSTreeCursor cursor = ts_tree_cursor_new(ts_tree_root_node(parsed));
    bool going = true;
    while (going) {
      const bool descend = enter(cursor);
      if (descend && ts_tree_cursor_goto_first_child(&cursor)) continue;
      leave();
      while (going && !ts_tree_cursor_goto_next_sibling(&cursor)) {
        going = ts_tree_cursor_goto_parent(&cursor);
        if (going) leave();
      }
    }
    ts_tree_cursor_delete(&cursor);
    for (NodeId id = 0; id < tree_.nodes_.size(); ++id)
      if (lacks_body(id)) give_body(id);
  }

 private:
  // def save(self): with its statements on its own level, or none: an IndentationError to Python,
  // while the grammar lets a block be empty.
  bool lacks_body(NodeId id) {
    const Node& node = tree_[id];
    if (node.kind != Kind::block || node.first_child != kNoNode) return false;
    if (!tree_.has_errors_ || node.begin < tree_.first_error_) tree_.first_error_ = node.begin;
    tree_.has_errors_ = true;
    return tree_[node.parent].kind == Kind::function;
  }

  bool is_string_statement(NodeId id) const {
    return tree_[id].kind == Kind::expression_statement &&
           tree_[tree_[id].first_child].kind == Kind::string;
  }

  // What follows on the function's own level, up to the next definition, was to be its body where
  // it begins with a docstring, or in a class, where there is little else to stand.
  void give_body(NodeId block) {
    std::vector<Node>& nodes = tree_.nodes_;
    const NodeId function = nodes[block].parent;
    const bool is_decorated = tree_[nodes[function].parent].kind == Kind::decorated;
    const NodeId outer = is_decorated ? nodes[function].parent : function;
    const NodeId first = nodes[outer].next_sibling;
    const auto ends = [&](NodeId at) {
      const Kind kind = tree_[at].kind;
      return at == kNoNode || kind == Kind::function || kind == Kind::class_definition ||
             kind == Kind::decorated || tree_.text(at).starts_with("if __name__");
    };
    const NodeId level = nodes[outer].parent;
    const bool is_method = tree_[tree_[level].parent].kind == Kind::class_definition;
    if (ends(first) || !(is_method || is_string_statement(first))) return;
    NodeId last = first;
    for (NodeId at = first; !ends(at); at = nodes[at].next_sibling) {
      nodes[at].parent = block;
      last = at;
    }
    nodes[block].first_child = first;
    nodes[outer].next_sibling = nodes[last].next_sibling;
    nodes[last].next_sibling = kNoNode;
    for (const NodeId grown : {block, function, outer}) {
      nodes[grown].last = nodes[last].last;
      nodes[grown].end = nodes[last].end;
    }
    nodes[block].begin = nodes[first].begin;
  }

  struct Level {
    NodeId node;  // where children attach; kNoNode inside what is skipped
    bool own;     // the node was made at this level
    Field inherited = Field::none;
  };

  // Handles the node under the cursor; true when its children are wanted.
  bool enter(const TSTreeCursor& cursor) {
    const TSNode node = ts_tree_cursor_current_node(&cursor);
    const TSSymbol symbol = ts_node_symbol(node);
    // The ERROR symbol lies outside the table.
    const bool is_error = symbol >= grammar().meanings.size();
    if (is_error) note_error(node);
    const Meaning meaning =
        is_error ? Meaning{Treatment::keep, Kind::error, Op::none} : grammar().meanings[symbol];
    const NodeId parent = levels_.empty() ? kNoNode : levels_.back().node;
    if (ts_node_is_missing(node)) {
      note_error(node);
      return skip(parent);
    }
    // Most nodes are punctuation and keywords: the rest of the work is not for them.
    if (meaning.treatment == Treatment::skip) return skip(parent);
    const TSFieldId field_id = ts_tree_cursor_current_field_id(&cursor);
    Field field = grammar().fields[field_id];
    if (field == Field::none && !levels_.empty() && !levels_.back().own)
      field = levels_.back().inherited;
    if (field_id == grammar().type_field && field_id != 0) return skip(parent);
    switch (meaning.treatment) {
      case Treatment::keep:
        add(node, meaning.kind, field, parent);
        return true;
      case Treatment::leaf:
        add(node, meaning.kind, field, parent);
        return false;
      case Treatment::string:
        add(node, meaning.kind, field, parent);
        return true;
      case Treatment::elide:
        levels_.push_back({parent, false, field});
        return true;
      case Treatment::comment:
        tree_.comments_.push_back({ts_node_start_byte(node), ts_node_end_byte(node)});
        return skip(parent);
      case Treatment::op_token:
        if (parent != kNoNode) note_operator(parent, meaning.op);
        return skip(parent);
      case Treatment::skip:
        break;
    }
    return skip(parent);
  }

  // An error at the root covers the file and tells nothing: one within it is nearer.
  void note_error(TSNode node) {
    if (!tree_.has_errors_ || tree_.first_error_ == 0)
      tree_.first_error_ = ts_node_start_byte(node);
    tree_.has_errors_ = true;
  }

  bool skip(NodeId parent) {
    levels_.push_back({parent, false});
    return false;
  }

  void note_operator(NodeId parent, Op op) {
    Node& node = tree_.nodes_[parent];
    if (node.op == Op::none) node.op = op;
  }

  void add(TSNode from, Kind kind, Field field, NodeId parent) {
    const auto id = static_cast<NodeId>(tree_.nodes_.size());
    Node node;
    node.kind = kind;
    node.field = field;
    node.begin = ts_node_start_byte(from);
    node.end = ts_node_end_byte(from);
    node.parent = parent;
    tree_.nodes_.push_back(node);
    last_child_.push_back(kNoNode);
    if (parent != kNoNode) {
      NodeId& previous = last_child_[parent];
      (previous == kNoNode ? tree_.nodes_[parent].first_child
                           : tree_.nodes_[previous].next_sibling) = id;
      previous = id;
    }
    levels_.push_back({id, true});
  }

  void leave() {
    const Level level = levels_.back();
    levels_.pop_back();
    if (level.own) tree_.nodes_[level.node].last = static_cast<NodeId>(tree_.nodes_.size());
  }

  SyntaxTree& tree_;
  std::vector<Level> levels_;
  std::vector<NodeId> last_child_;
};

SyntaxTree SyntaxTree::parse(std::string source, std::chrono::microseconds limit) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  SyntaxTree tree;
  tree.source_ = std::move(source);
  tree.line_starts_.push_back(tree.source_.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0);
  const char* data = tree.source_.data();
  const char* end = data + tree.source_.size();
  for (const char* at = data;
       (at = static_cast<const char*>(std::memchr(at, '\n', static_cast<std::size_t>(end - at))));)
    tree.line_starts_.push_back(static_cast<std::uint32_t>(++at - data));
  ts_parser_set_timeout_micros(thread_parser(), static_cast<std::uint64_t>(limit.count()));
  const std::unique_ptr<TSTree, TreeDeleter> parsed(ts_parser_parse_string(
      thread_parser(), nullptr, data, static_cast<std::uint32_t>(tree.source_.size())));
  if (parsed) {
    TreeBuilder(tree).build(parsed.get());
  } else {
    ts_parser_reset(thread_parser());
    tree.timed_out_ = true;
  }
  if (tree.nodes_.empty()) {
    tree.has_errors_ = true;
    Node root;
    root.kind = Kind::module;
    root.last = 1;
    tree.nodes_.push_back(root);
  }
  return tree;
}

}  // namespace bench::diagnose
