#include "diagnose/driver/added_paths.hpp"

#include "diagnose/driver/assemble.hpp"
#include "diagnose/driver/directory.hpp"
#include "diagnose/driver/path_reader.hpp"

#include <algorithm>
#include <filesystem>
#include <utility>

namespace bench::diagnose {
namespace {

constexpr std::size_t kMaxDirectories = 32;
constexpr int kMaxEnds = 3;  // of an absolute path: lib, src/lib, project/src/lib

// A function that puts what it is given on the search path, and which of its parameters that is.
struct Adder {
  std::string_view name;
  std::string_view parameter;
  std::size_t index = 0;
};

using Files = std::vector<std::shared_ptr<const Module>>;

bool changes_search_path(const Module& module) {
  return module.tree().holds("sys.path") || module.tree().holds("addsitedir");
}

bool adds(const Call& call) {
  if (call.path == "site.addsitedir") return true;
  return call.path == "sys.path.insert" || call.path == "sys.path.append" ||
         call.path == "sys.path.extend";
}

NodeId added_by(const Module& module, const Call& call) {
  return module.positional(call.node, call.name == "insert" ? 1 : 0);
}

template <typename Visit>
void for_each_addition(const Module& module, Visit visit) {
  for (const char* name : {"insert", "append", "extend", "addsitedir"})
    for (const std::uint32_t index : module.calls_of(std::string_view(name)))
      if (const Call& call = module.calls()[index]; adds(call)) visit(added_by(module, call));
  // sys.path += ["lib"] and sys.path = ["lib"] + sys.path
  for (const std::uint32_t index : module.defs_of(std::string_view("path"), true)) {
    const Def& def = module.defs()[index];
    if (module.text(def.target) != "sys.path" || def.value == kNoNode) continue;
    const SyntaxTree& tree = module.tree();
    const bool is_sum = tree[def.value].kind == Kind::binary;
    visit(is_sum ? tree.child(def.value, Field::left) : def.value);
    if (is_sum) visit(tree.child(def.value, Field::right));
  }
}

std::vector<Adder> adders_in(const Module& module) {
  std::vector<Adder> out;
  for_each_addition(module, [&](NodeId added) {
    const Function* const function = module.function_around(added);
    if (function == nullptr || added == kNoNode) return;
    for (std::size_t i = 0; i < function->parameters.size(); ++i)
      if (function->parameters[i].name == module.text(added))
        out.push_back({function->name, function->parameters[i].name, i});
  });
  return out;
}

class Collector {
 public:
  Collector(const std::string& script, const std::string& top) : script_(script), top_(top) {}

  void add_from(const Module& module, const std::vector<Adder>& adders) {
    const PathReader reader(module, script_);
    if (changes_search_path(module))
      for_each_addition(module, [&](NodeId added) { add_all(reader.read(added)); });
    for (const Adder& adder : adders)
      for (const std::uint32_t index : module.calls_of(adder.name))
        add_all(
            reader.read(module.argument(module.calls()[index].node, adder.index, adder.parameter)));
  }

  std::vector<std::string> take() { return std::move(out_); }

 private:
  void add_all(const std::vector<ReadPath>& paths) {
    for (const ReadPath& path : paths) add(path);
  }

  void add(const ReadPath& path) {
    if (path.is_anchored) return add(path.text);
    const bool is_elsewhere = path.text.starts_with('/') || path.text.starts_with('~');
    if (is_elsewhere) return add_ends(path.text);
    for (const std::string& start : directories_above(script_, top_)) add(start + path.text);
  }

  void add(const std::string& path) {
    std::string directory = std::filesystem::path(path).lexically_normal().string();
    if (directory == "." || directory == "./") directory.clear();
    if (!directory.empty() && !directory.ends_with('/')) directory += '/';
    const std::string inside = prefix_of(top_);
    const bool is_out = inside.empty() ? directory.starts_with("../") || directory.starts_with('/')
                                       : !directory.starts_with(inside);
    if (is_out || out_.size() >= kMaxDirectories) return;
    if (std::find(out_.begin(), out_.end(), directory) == out_.end())
      out_.push_back(std::move(directory));
  }

  void add_ends(const std::string& path) {
    if (path.starts_with('/')) add(path);
    const std::filesystem::path whole = std::filesystem::path(path).lexically_normal();
    std::filesystem::path end;
    std::vector<std::filesystem::path> parts(whole.begin(), whole.end());
    while (!parts.empty() && parts.back().empty()) parts.pop_back();
    for (int i = 0; i < kMaxEnds && !parts.empty(); ++i, parts.pop_back()) {
      if (parts.back() == "/" || parts.back() == "~" || parts.back() == "..") break;
      end = end.empty() ? parts.back() : parts.back() / end;
      add(prefix_of(top_) + end.string());
    }
  }

  const std::string& script_;
  const std::string& top_;
  std::vector<std::string> out_;
};

}  // namespace

std::vector<std::string> added_directories(const Files& files, const std::string& script,
                                           const std::string& top) {
  std::vector<Adder> adders;
  bool any = false;
  for (const auto& module : files) {
    if (!changes_search_path(*module)) continue;
    any = true;
    for (const Adder& each : adders_in(*module)) adders.push_back(each);
  }
  if (!any) return {};
  Collector collector(script, top);
  for (const auto& module : files) collector.add_from(*module, adders);
  return collector.take();
}

}  // namespace bench::diagnose
