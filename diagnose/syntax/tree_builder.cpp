#include "diagnose/syntax/tree_builder.hpp"

#include <algorithm>

namespace bench::diagnose {
namespace {

// What the symbols of pieces mean, and the fields and other names of children in a production.
struct PieceGrammar {
  std::vector<Meaning> meanings;
  std::vector<char> visible;
  std::vector<TSFieldId> fields;
  std::vector<Field> roles;  // of fields
  TSFieldId type_field;
  std::size_t width;  // most children of a production that has fields or other names

  explicit PieceGrammar(const TSLanguage& language)
      : fields(std::size_t{language.production_id_count} * language.max_alias_sequence_length),
        roles(grammar().fields),
        type_field(grammar().type_field),
        width(language.max_alias_sequence_length) {
    const std::uint32_t symbol_count = language.symbol_count + language.alias_count;
    for (TSSymbol symbol = 0; symbol < symbol_count; ++symbol) {
      meanings.push_back(grammar().meanings[language.public_symbol_map[symbol]]);
      visible.push_back(language.symbol_metadata[symbol].visible);
    }
    for (std::uint32_t production = 0; production < language.production_id_count; ++production) {
      const TSFieldMapSlice slice = language.field_map_slices[production];
      for (std::uint32_t at = slice.length; at-- > 0;) {  // the first entry of a child counts
        const TSFieldMapEntry& entry = language.field_map_entries[slice.index + at];
        if (!entry.inherited) fields[production * width + entry.child_index] = entry.field_id;
      }
    }
  }
};

const PieceGrammar& piece_grammar() {
  static const PieceGrammar instance(*tree_sitter_python());
  return instance;
}

}  // namespace

void TreeBuilder::build(const TSTree* parsed) {
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
  mend_bodies();
}

void TreeBuilder::build(const PlainTree& parsed) {
  const Piece& root = parsed.pieces[parsed.root];
  const Kind kind = piece_grammar().meanings[root.symbol].kind;
  Frame frame{};
  frame.node = add(root.begin, root.end, kind, Field::none, kNoNode);
  frame.own = true;
  open(root, frame);
  while (!frames_.empty()) {
    Frame& top = frames_.back();
    if (top.next < top.end) {
      visit(parsed, parsed.children[top.next++]);
      continue;
    }
    if (top.own) close(top.node);
    frames_.pop_back();
  }
  mend_bodies();
}

void TreeBuilder::open(const Piece& piece, const Frame& frame) {
  frames_.push_back(frame);
  frames_.back().next = piece.first_child;
  frames_.back().end = piece.first_child + piece.child_count;
  frames_.back().production = piece.production;
}

// One child of the piece on top: the same as enter() for a node of tree-sitter's.
void TreeBuilder::visit(const PlainTree& parsed, std::uint32_t child) {
  const PieceGrammar& pieces = piece_grammar();
  const Piece& piece = parsed.piece(child);
  Frame& above = frames_.back();
  TSSymbol alias = 0;
  TSFieldId field = 0;
  if ((child & PlainTree::kExtra) == 0) {
    const std::size_t place = above.place++;
    if (above.production != 0 && place < pieces.width) {
      const std::size_t at = above.production * pieces.width + place;
      alias = tree_sitter_python()->alias_sequences[at];
      field = pieces.fields[at];
    }
    if (field == 0) field = above.field;
  }
  if (alias == 0 && !pieces.visible[piece.symbol]) {
    Frame frame{};
    frame.node = above.node;
    frame.hidden = true;
    frame.field = field;
    frame.inherited = above.inherited;
    if (piece.child_count > 0) open(piece, frame);
    return;
  }
  const Meaning meaning = pieces.meanings[alias != 0 ? alias : piece.symbol];
  // Most pieces are punctuation and keywords: the rest of the work is not for them.
  if (meaning.treatment == Treatment::skip) return;
  if (field != 0 && field == pieces.type_field) return;
  Field role = pieces.roles[field];
  if (role == Field::none) role = above.inherited;
  Frame frame{};
  frame.node = above.node;
  switch (meaning.treatment) {
    case Treatment::keep:
    case Treatment::string:
      frame.node = add(piece.begin, piece.end, meaning.kind, role, above.node);
      frame.own = true;
      open(piece, frame);
      break;
    case Treatment::leaf:
      close(add(piece.begin, piece.end, meaning.kind, role, above.node));
      break;
    case Treatment::elide:
      frame.inherited = role;
      open(piece, frame);
      break;
    case Treatment::comment:
      tree_.comments_.push_back({piece.begin, piece.end});
      break;
    case Treatment::op_token:
      note_operator(above.node, meaning.op);
      break;
    case Treatment::skip:
      break;
  }
}

// def save(self): with its statements on its own level, or none: an IndentationError to Python,
// while the grammar lets a block be empty.
bool TreeBuilder::lacks_body(NodeId id) {
  const Node& node = tree_[id];
  if (node.kind != Kind::block || node.first_child != kNoNode) return false;
  if (!tree_.has_errors_ || node.begin < tree_.first_error_) tree_.first_error_ = node.begin;
  tree_.has_errors_ = true;
  return tree_[node.parent].kind == Kind::function;
}

bool TreeBuilder::is_string_statement(NodeId id) const {
  return tree_[id].kind == Kind::expression_statement &&
         tree_[tree_[id].first_child].kind == Kind::string;
}

// What follows on the function's own level, up to the next definition, was to be its body where
// it begins with a docstring, or in a class, where there is little else to stand.
void TreeBuilder::give_body(NodeId block) {
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

void TreeBuilder::mend_bodies() {
  for (NodeId id = 0; id < tree_.nodes_.size(); ++id)
    if (tree_.nodes_[id].kind == Kind::block && lacks_body(id)) give_body(id);
}

// Handles the node under the cursor; true when its children are wanted.
bool TreeBuilder::enter(const TSTreeCursor& cursor) {
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
  if (meaning.treatment == Treatment::skip) return skip(parent);
  const TSFieldId field_id = ts_tree_cursor_current_field_id(&cursor);
  Field field = grammar().fields[field_id];
  if (field == Field::none && !levels_.empty() && !levels_.back().own)
    field = levels_.back().inherited;
  if (field_id == grammar().type_field && field_id != 0) return skip(parent);
  const std::uint32_t begin = ts_node_start_byte(node);
  const std::uint32_t end = ts_node_end_byte(node);
  switch (meaning.treatment) {
    case Treatment::keep:
    case Treatment::leaf:
    case Treatment::string:
      levels_.push_back({add(begin, end, meaning.kind, field, parent), true});
      return meaning.treatment != Treatment::leaf;
    case Treatment::elide:
      levels_.push_back({parent, false, field});
      return true;
    case Treatment::comment:
      tree_.comments_.push_back({begin, end});
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
void TreeBuilder::note_error(TSNode node) {
  if (!tree_.has_errors_ || tree_.first_error_ == 0) tree_.first_error_ = ts_node_start_byte(node);
  tree_.has_errors_ = true;
}

bool TreeBuilder::skip(NodeId parent) {
  levels_.push_back({parent, false});
  return false;
}

void TreeBuilder::note_operator(NodeId parent, Op op) {
  Node& node = tree_.nodes_[parent];
  if (node.op == Op::none) node.op = op;
}

NodeId TreeBuilder::add(std::uint32_t begin, std::uint32_t end, Kind kind, Field field,
                        NodeId parent) {
  Node node;
  node.kind = kind;
  node.field = field;
  node.begin = begin;
  node.end = end;
  node.parent = parent;
  tree_.nodes_.push_back(node);
  return static_cast<NodeId>(tree_.nodes_.size() - 1);
}

// All of the node's subtree is there: its children follow one another.
void TreeBuilder::close(NodeId id) {
  std::vector<Node>& nodes = tree_.nodes_;
  const auto last = static_cast<NodeId>(nodes.size());
  nodes[id].last = last;
  if (id + 1 < last) nodes[id].first_child = id + 1;
  for (NodeId at = id + 1; at < last; at = nodes[at].last)
    if (nodes[at].last < last) nodes[at].next_sibling = nodes[at].last;
}

void TreeBuilder::leave() {
  const Level level = levels_.back();
  levels_.pop_back();
  if (level.own) close(level.node);
}

}  // namespace bench::diagnose
