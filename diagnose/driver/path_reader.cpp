#include "diagnose/driver/path_reader.hpp"

#include <algorithm>
#include <array>
#include <charconv>

namespace bench::diagnose {
namespace {

constexpr int kDepth = 12;
constexpr std::size_t kMaxPaths = 8;

// Calls that leave a path the place that it is.
constexpr auto kSame =
    std::to_array<std::string_view>({"abspath", "absolute", "as_posix", "expanduser", "expandvars",
                                     "fspath", "normpath", "realpath", "resolve", "rstrip", "str"});

bool keeps(std::string_view name) {
  return std::find(kSame.begin(), kSame.end(), name) != kSame.end();
}

ReadPath joined(const ReadPath& left, const ReadPath& right) {
  if (right.is_anchored || right.text.starts_with('/')) return right;
  return {left.text.empty() ? right.text : left.text + '/' + right.text, left.is_anchored};
}

using Paths = std::vector<ReadPath>;

template <typename Combine>
Paths each_with_each(const Paths& left, const Paths& right, Combine combine) {
  Paths out;
  for (const ReadPath& a : left)
    for (const ReadPath& b : right)
      if (out.size() < kMaxPaths) out.push_back(combine(a, b));
  return out;
}

Paths all_joined(const Paths& left, const Paths& right) {
  return each_with_each(left, right, joined);
}

// "{}/.." and "%s/..": the text that follows on what is filled in.
Paths followed_by(Paths paths, std::string_view text) {
  for (ReadPath& each : paths) each.text += text;
  return paths;
}

Paths up(Paths paths) { return followed_by(std::move(paths), "/.."); }

}  // namespace

Paths PathReader::read(NodeId expression, int depth) const {
  if (expression == kNoNode || depth > kDepth) return {};
  const Node& node = module_[expression];
  switch (node.kind) {
    case Kind::string:
    case Kind::concatenated_string:
      if (auto text = module_.tree().string_value(expression)) return {{std::move(*text), false}};
      return read_holes(expression, depth);
    case Kind::identifier:
      return read_name(expression, depth);
    case Kind::attribute:
      return read_attribute(expression, depth);
    case Kind::call:
      if (const Call* const call = module_.call_at(expression)) return read_call(*call, depth);
      return {};
    case Kind::subscript:
      return read_subscript(expression, depth);
    case Kind::binary:
      return read_binary(expression, depth);
    case Kind::list:
    case Kind::tuple: {
      Paths out;
      for (NodeId at = node.first_child; at != kNoNode; at = module_[at].next_sibling)
        for (ReadPath& each : read(at, depth + 1)) out.push_back(std::move(each));
      return out;
    }
    default:
      return {};
  }
}

Paths PathReader::read_call(const Call& call, int depth) const {
  const NodeId first = module_.positional(call.node, 0);
  if (call.name == "getcwd" || call.name == "cwd") return {{"", false}};
  if (call.name == "join" && call.path.ends_with("path.join")) {
    Paths out = read(first, depth + 1);
    for (std::size_t i = 1; i < module_.positional_count(call.node); ++i)
      out = all_joined(out, read(module_.positional(call.node, i), depth + 1));
    return out;
  }
  if (call.name == "dirname") return up(read(first, depth + 1));
  const NodeId object =
      call.function == kNoNode ? kNoNode : module_.tree().child(call.function, Field::object);
  if (call.name == "joinpath") return all_joined(read(object, depth + 1), read(first, depth + 1));
  if (call.name == "format") return read_format(object, call, depth);
  if (call.name == "Path" || call.name == "PurePath")
    return first == kNoNode ? Paths{{"", false}} : read(first, depth + 1);
  // os.path.abspath(path) and path.resolve().
  if (!keeps(call.name)) return {};
  const bool is_method = object != kNoNode && !call.path.starts_with("os.");
  return read(is_method ? object : first, depth + 1);
}

Paths PathReader::read_name(NodeId name, int depth) const {
  const std::string_view text = module_.text(name);
  if (text == "__file__") return {{module_.path(), true}};
  const Def* const def = last_before(text, false, name);
  if (def == nullptr || def->element >= 0) return {};
  if (def->kind == DefKind::parameter) return read_parameter(*def, depth);
  const bool is_value = def->kind == DefKind::assign || def->kind == DefKind::loop;
  return is_value ? read(def->value, depth + 1) : Paths{};
}

// What the file's own calls hand to the parameter.
Paths PathReader::read_parameter(const Def& def, int depth) const {
  const Function* const function = module_.function_at(def.scope);
  if (function == nullptr) return {};
  const auto& parameters = function->parameters;
  const auto at = std::find_if(parameters.begin(), parameters.end(),
                               [&](const Parameter& each) { return each.name == def.name; });
  Paths out;
  for (const std::uint32_t index : module_.calls_of(function->name)) {
    const NodeId given = module_.argument(
        module_.calls()[index].node, static_cast<std::size_t>(at - parameters.begin()), def.name);
    for (ReadPath& each : read(given, depth + 1)) out.push_back(std::move(each));
  }
  return out;
}

Paths PathReader::read_attribute(NodeId attribute, int depth) const {
  const SyntaxTree& tree = module_.tree();
  const std::string_view name = tree.text(tree.child(attribute, Field::attribute));
  if (name == "parent") return up(read(tree.child(attribute, Field::object), depth + 1));
  if (name == "pardir") return {{"..", false}};
  if (name == "curdir") return {{".", false}};
  // cfg.root of a class that has it, or of an object that is given it.
  for (const bool of_object : {true, false})
    if (const Def* const def = last_before(name, of_object, attribute))
      if (def->kind == DefKind::assign && def->element < 0) return read(def->value, depth + 1);
  return {};
}

// sys.path[0] is the script's directory, parents[1] two above the file.
Paths PathReader::read_subscript(NodeId subscript, int depth) const {
  const SyntaxTree& tree = module_.tree();
  const NodeId value = tree.child(subscript, Field::value);
  const std::string_view index = tree.text(tree.child(subscript, Field::subscript));
  const std::string_view text = tree.text(value);
  if (text == "sys.path" && index == "0") return up({{script_, true}});
  if (text == "sys.argv" && index == "0") return {{script_, true}};
  if (!text.ends_with(".parents")) return {};
  int steps = 0;
  const auto parsed = std::from_chars(index.data(), index.data() + index.size(), steps);
  if (parsed.ec != std::errc() || steps < 0 || steps > kDepth) return {};
  Paths out = read(tree.child(value, Field::object), depth + 1);
  for (int i = 0; i <= steps; ++i) out = up(std::move(out));
  return out;
}

Paths PathReader::read_binary(NodeId binary, int depth) const {
  const SyntaxTree& tree = module_.tree();
  const NodeId left = tree.child(binary, Field::left);
  const NodeId right = tree.child(binary, Field::right);
  switch (tree[binary].op) {
    case Op::divide:
      return all_joined(read(left, depth + 1), read(right, depth + 1));
    case Op::add:
      return each_with_each(read(left, depth + 1), read(right, depth + 1),
                            [](const ReadPath& a, const ReadPath& b) {
                              return ReadPath{a.text + b.text, a.is_anchored};
                            });
    case Op::modulo: {
      const auto text = tree.string_value(left);
      if (!text || !text->starts_with("%s")) return {};
      return followed_by(read(right, depth + 1), std::string_view(*text).substr(2));
    }
    default:
      return {};
  }
}

// f"{ROOT}/lib": one hole, and no text before it.
Paths PathReader::read_holes(NodeId string, int depth) const {
  const SyntaxTree& tree = module_.tree();
  if (tree[string].kind != Kind::string || tree.child_count(string) != 1) return {};
  const NodeId hole = tree[string].first_child;
  const std::string_view source = tree.source();
  const std::size_t close = source.find('}', tree[hole].end > 0 ? tree[hole].end - 1 : 0);
  const std::size_t open = source.find('{', tree[string].begin);
  if (open > tree[hole].begin || close >= tree[string].end) return {};
  if (source.find_first_of("\"'", tree[string].begin) + 1 != open) return {};
  std::string_view rest = source.substr(close + 1, tree[string].end - close - 1);
  rest = rest.substr(0, rest.find_first_of("\"'{"));
  return followed_by(read(hole, depth + 1), rest);
}

Paths PathReader::read_format(NodeId text, const Call& call, int depth) const {
  const auto pattern = module_.tree().string_value(text);
  if (!pattern || !pattern->starts_with("{}")) return {};
  return followed_by(read(module_.positional(call.node, 0), depth + 1),
                     std::string_view(*pattern).substr(2));
}

// The nearest above the use, in its function or in the file.
const Def* PathReader::last_before(std::string_view name, bool is_attribute, NodeId use) const {
  const Def* found = nullptr;
  for (const std::uint32_t index : module_.defs_of(name, is_attribute)) {
    const Def& def = module_.defs()[index];
    const bool is_above = def.target < use;
    const bool is_seen = is_attribute || def.scope == 0 || module_.class_at(def.scope) != nullptr ||
                         module_.tree().contains(def.scope, use);
    if (is_above && is_seen) found = &def;
  }
  return found;
}

}  // namespace bench::diagnose
