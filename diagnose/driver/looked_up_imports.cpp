#include "diagnose/driver/looked_up_imports.hpp"

#include <algorithm>

namespace bench::diagnose {
namespace {

constexpr int kDepth = 8;
constexpr std::size_t kMostModules = 12;
constexpr char kAny = '*';

// The text that an expression makes, with * for each part that is not written out.
class PatternReader {
 public:
  explicit PatternReader(const Module& module) : module_(module), tree_(module.tree()) {}

  std::string read(NodeId expression, int depth = 0) const {
    const std::string any(1, kAny);
    if (expression == kNoNode || depth > kDepth) return any;
    if (auto text = tree_.string_value(expression)) return *text;
    switch (tree_[expression].kind) {
      case Kind::string:
        return filled(expression);
      case Kind::binary:
        return read_binary(expression, depth);
      case Kind::call:
        return read_call(expression, depth);
      case Kind::identifier:
        return read_name(expression, depth);
      default:
        return any;
    }
  }

 private:
  // "models.%s.trainer" % name
  std::string read_binary(NodeId binary, int depth) const {
    const NodeId left = tree_.child(binary, Field::left);
    if (tree_[binary].op == Op::add)
      return read(left, depth + 1) + read(tree_.child(binary, Field::right), depth + 1);
    const bool fills = tree_[binary].op == Op::modulo;
    const auto text = fills ? tree_.string_value(left) : std::nullopt;
    return text ? with_any(*text, "%", "sdr") : std::string(1, kAny);
  }

  // "models.{}".format(name)
  std::string read_call(NodeId call, int depth) const {
    const NodeId function = tree_.child(call, Field::function);
    const NodeId object = function == kNoNode ? kNoNode : tree_.child(function, Field::object);
    const std::string_view name = tree_.text(tree_.child(function, Field::attribute));
    if (name == "lower" || name == "strip") return read(object, depth + 1);
    const auto text = name == "format" ? tree_.string_value(object) : std::nullopt;
    return text ? with_any(*text, "{", "}") : std::string(1, kAny);
  }

  // The only value of a name that the same function gives it.
  std::string read_name(NodeId name, int depth) const {
    const Def* found = nullptr;
    for (const std::uint32_t index : module_.defs_of(tree_.text(name), false)) {
      const Def& def = module_.defs()[index];
      if (def.scope != module_.scope_of(name) || def.kind == DefKind::parameter) continue;
      if (found != nullptr) return std::string(1, kAny);
      found = &def;
    }
    const bool is_value = found != nullptr && found->kind == DefKind::assign && found->element < 0;
    return is_value ? read(found->value, depth + 1) : std::string(1, kAny);
  }

  // f"models.{name}.net"
  std::string filled(NodeId string) const {
    std::string_view text = tree_.text(string);
    const std::size_t quote = text.find_first_of("\"'");
    if (quote == std::string_view::npos) return std::string(1, kAny);
    text.remove_prefix(quote + 1);
    text = text.substr(0, text.find_last_of("\"'"));
    return with_any(text, "{", "}");
  }

  // Each hole begins with a sign and goes up to one of the letters that end it.
  static std::string with_any(std::string_view text, std::string_view begin,
                              std::string_view ends) {
    std::string out;
    while (!text.empty()) {
      const std::size_t hole = text.find(begin);
      out += text.substr(0, hole);
      if (hole == std::string_view::npos) break;
      out += kAny;
      const std::size_t end = text.find_first_of(ends, hole + 1);
      if (end == std::string_view::npos) break;
      text.remove_prefix(end + 1);
    }
    return out;
  }

  const Module& module_;
  const SyntaxTree& tree_;
};

bool matches(std::string_view name, std::string_view pattern) {
  const std::size_t any = pattern.find(kAny);
  if (any == std::string_view::npos) return name == pattern;
  if (name.substr(0, any) != pattern.substr(0, any)) return false;
  const std::string_view rest = pattern.substr(any + 1);
  for (std::size_t at = any; at <= name.size(); ++at)
    if (matches(name.substr(at), rest)) return true;
  return false;
}

// The pattern is models.*_model: its folder is written out, and not all of it is.
bool says_where(const std::string& pattern) {
  const std::size_t any = pattern.find(kAny);
  const std::size_t dot = pattern.find('.');
  return any != std::string::npos && dot != std::string::npos && dot > 0 && dot < any &&
         pattern.find('/') == std::string::npos;
}

void add_matches(const std::string& pattern, const std::string& directory,
                 const std::string& before, const Lister& list, std::vector<std::string>& out) {
  const std::size_t dot = pattern.find('.');
  const std::string part = pattern.substr(0, dot);
  for (const DirectoryEntry& entry : list(directory)) {
    if (out.size() > kMostModules) return;
    if (dot != std::string::npos) {
      if (entry.is_directory && matches(entry.name, part))
        add_matches(pattern.substr(dot + 1), directory + entry.name + '/',
                    before + entry.name + '.', list, out);
      continue;
    }
    std::string_view stem = entry.name;
    if (!entry.is_directory && !stem.ends_with(".py")) continue;
    if (!entry.is_directory) stem.remove_suffix(3);
    if (!stem.starts_with("__") && matches(stem, part)) out.push_back(before + std::string(stem));
  }
}

}  // namespace

std::vector<LookedUpImport> looked_up_imports(const Module& module) {
  std::vector<LookedUpImport> out;
  for (const char* name : {"import_module", "__import__"})
    for (const std::uint32_t index : module.calls_of(std::string_view(name))) {
      const NodeId call = module.calls()[index].node;
      std::string pattern = PatternReader(module).read(module.positional(call, 0));
      if (says_where(pattern)) out.push_back({call, std::move(pattern)});
    }
  return out;
}

std::vector<std::string> modules_like(const std::string& pattern, const std::string& directory,
                                      const Lister& list) {
  std::vector<std::string> out;
  add_matches(pattern, directory, "", list, out);
  if (out.size() > kMostModules) out.clear();
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace bench::diagnose
