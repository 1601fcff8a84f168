#include "diagnose/config/python_config.hpp"

#include "diagnose/model/module.hpp"
#include "diagnose/model/role_names.hpp"

#include <algorithm>
#include <array>

namespace bench::diagnose {
namespace {

constexpr int kDepth = 12;
constexpr std::size_t kMaxEntries = 5'000;

Value value_of_number(std::string text, bool negative) {
  std::erase(text, '_');
  Value value = value_of_scalar(text);
  if (value.type != Value::Type::integer && value.type != Value::Type::number) return {};
  if (negative) value.integer = -value.integer;
  if (negative) value.number = -value.number;
  return value;
}

Value value_of_node(const SyntaxTree& tree, NodeId node) {
  Value value;
  switch (tree[node].kind) {
    case Kind::integer:
    case Kind::floating:
      return value_of_number(std::string(tree.text(node)), false);
    case Kind::unary: {
      const NodeId of = tree.child(node, Field::argument);
      if (tree[node].op != Op::subtract || of == kNoNode || tree[of].kind == Kind::unary) return {};
      const Value inner = value_of_node(tree, of);
      return inner.known() ? value_of_number(std::string(tree.text(of)), true) : Value{};
    }
    case Kind::true_literal:
    case Kind::false_literal:
      value.type = Value::Type::boolean;
      value.integer = tree[node].kind == Kind::true_literal ? 1 : 0;
      return value;
    case Kind::none_literal:
      value.type = Value::Type::none;
      return value;
    case Kind::string:
      if (auto text = tree.string_value(node)) {
        value.type = Value::Type::string;
        value.string = std::move(*text);
      }
      return value;
    default:
      return {};
  }
}

class Reader {
 public:
  explicit Reader(const Module& module) : module_(module), tree_(module.tree()) {}

  std::vector<ConfigEntry> read() {
    if (is_program()) return {};
    for (const NodeId node : module_.nodes_of(Kind::assignment)) read_assignment(node);
    return std::move(out_);
  }

 private:
  // Scripts stand beside configurations in experiments/.
  bool is_program() const {
    return !module_.classes().empty() || !module_.loops().empty() || module_.has_main_guard() ||
           module_.imports_top_level("torch");
  }

  void read_assignment(NodeId node) {
    const NodeId left = tree_.child(node, Field::left);
    const NodeId right = tree_.child(node, Field::right);
    if (left == kNoNode || right == kNoNode) return;
    const std::string_view name = tree_.text(left);
    if (tree_[left].kind == Kind::identifier && module_.scope_of(node) == 0)
      return add(std::string(name), left, right, 0);
    if (tree_[left].kind != Kind::attribute || name.find_first_of("([ \n") != name.npos) return;
    std::string_view path = name;
    if (path.starts_with("self.")) path.remove_prefix(5);
    const std::size_t dot = path.find('.');
    if (dot != path.npos && is_config_name(path.substr(0, dot)))
      add(std::string(path.substr(dot + 1)), left, right, 0);
  }

  void add(std::string path, NodeId key, NodeId node, int depth) {
    if (depth > kDepth || out_.size() >= kMaxEntries) return;
    ConfigEntry entry;
    entry.file = module_.path();
    entry.path = path;
    entry.line = tree_.position(tree_[key].begin).line;
    entry.value = value_of_node(tree_, node);
    out_.push_back(std::move(entry));
    if (tree_[node].kind == Kind::dictionary) add_pairs(path, node, depth);
    if (tree_[node].kind == Kind::call &&
        tree_.text(tree_.child(node, Field::function)).find("dict") != std::string_view::npos)
      add_keywords(path, node, depth);
  }

  void add_pairs(const std::string& path, NodeId dictionary, int depth) {
    for (NodeId at = tree_[dictionary].first_child; at != kNoNode; at = tree_[at].next_sibling) {
      if (tree_[at].kind != Kind::pair) continue;
      const NodeId key = tree_.child(at, Field::key);
      const auto name = key == kNoNode ? std::nullopt : tree_.string_value(key);
      const NodeId value = tree_.child(at, Field::value);
      if (name && value != kNoNode) add(path + "." + *name, key, value, depth + 1);
    }
  }

  void add_keywords(const std::string& path, NodeId call, int depth) {
    const NodeId arguments = tree_.child(call, Field::arguments);
    if (arguments == kNoNode) return;
    for (NodeId at = tree_[arguments].first_child; at != kNoNode; at = tree_[at].next_sibling) {
      if (tree_[at].kind != Kind::keyword_argument) continue;
      const NodeId key = tree_.child(at, Field::name);
      const NodeId value = tree_.child(at, Field::value);
      if (key != kNoNode && value != kNoNode)
        add(path + "." + std::string(tree_.text(key)), key, value, depth + 1);
    }
  }

  const Module& module_;
  const SyntaxTree& tree_;
  std::vector<ConfigEntry> out_;
};

}  // namespace

std::vector<ConfigEntry> read_python_config(const Module& module) { return Reader(module).read(); }

bool is_config_name(std::string_view name) {
  const std::string plain = lowered(name);
  constexpr auto kWhole =
      std::to_array<std::string_view>({"_c", "hp", "hps", "hyp", "opt", "opts"});
  constexpr auto kParts = std::to_array<std::string_view>(
      {"args", "arguments", "cfg", "conf", "flags", "option", "params", "setting"});
  return std::find(kWhole.begin(), kWhole.end(), plain) != kWhole.end() ||
         std::any_of(kParts.begin(), kParts.end(),
                     [&](std::string_view part) { return plain.find(part) != std::string::npos; });
}

}  // namespace bench::diagnose
