#include "diagnose/model/lost_names.hpp"

#include <algorithm>
#include <string>

namespace bench::diagnose {
namespace {

constexpr std::int16_t kPython2 = 207;
constexpr std::int16_t kBeforeAsync = 306;  // async is a keyword since Python 3.7

struct LostName {
  std::string_view name;
  VersionOf package;
  std::int16_t last;  // the version that still has it
};

// Modules whose import fails.
constexpr LostName kModules[] = {
    {"torch._six", &NewestVersions::torch, 113},     // pytorch/pytorch#94709
    {"torch.utils.ffi", &NewestVersions::torch, 4},  // 1.0: cpp_extension in its place
    {"torchtext.legacy", &NewestVersions::torchtext, 11},
    {"torchvision.models.utils", &NewestVersions::torchvision, 10},
    {"pytorch_lightning.metrics", &NewestVersions::lightning, 104},  // torchmetrics
    {"ray_lightning", &NewestVersions::lightning, 106},              // its last one pins 1.6
};

// Functions that are gone or that only raise. Linear algebra: pytorch/pytorch#70980, #70981,
// #70982, #70986 and #70988; transforms: torch.fft is a module since 1.8.
constexpr LostName kFunctions[] = {
    {"torch.rfft", &NewestVersions::torch, 107},
    {"torch.irfft", &NewestVersions::torch, 107},
    {"torch.fft", &NewestVersions::torch, 107},
    {"torch.ifft", &NewestVersions::torch, 107},
    {"torch.lstsq", &NewestVersions::torch, 112},
    {"torch.matrix_rank", &NewestVersions::torch, 112},
    {"torch.eig", &NewestVersions::torch, 112},
    {"torch.solve", &NewestVersions::torch, 112},
    {"torch.symeig", &NewestVersions::torch, 113},
};

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// try: from torch._six import inf ... except ImportError, or under a test of the version.
bool has_way_around(const Module& module, NodeId node) {
  const SyntaxTree& tree = module.tree();
  for (NodeId at = tree[node].parent; at != kNoNode; at = tree[at].parent) {
    const Kind kind = tree[at].kind;
    if (kind == Kind::try_statement || kind == Kind::except_clause) return true;
    if (kind != Kind::if_statement && kind != Kind::conditional) continue;
    const std::string_view condition = tree.text(tree.child(at, Field::condition));
    if (kind == Kind::conditional || has(condition, "ersion") || has(condition, "VERSION") ||
        has(condition, "hasattr") || has(condition, "TYPE_CHECKING") || has(condition, "torch"))
      return true;
  }
  return false;
}

bool is_within(std::string_view name, std::string_view package) {
  return name.starts_with(package) &&
         (name.size() == package.size() || name[package.size()] == '.');
}

// from a.b import c names a.b and a.b.c, import a.b names a.b.
bool imports_it(const SyntaxTree& tree, NodeId statement, std::string_view package) {
  const NodeId from = tree.child(statement, Field::module_name);
  const std::string base(from == kNoNode ? std::string_view() : tree.text(from));
  if (from != kNoNode && is_within(base, package)) return true;
  for (NodeId at = tree[statement].first_child; at != kNoNode; at = tree[at].next_sibling) {
    const NodeId name = tree[at].kind == Kind::aliased_import ? tree.child(at, Field::name) : at;
    if (name == kNoNode || at == from) continue;
    const std::string full =
        from == kNoNode ? std::string(tree.text(name)) : base + '.' + std::string(tree.text(name));
    if (is_within(full, package)) return true;
  }
  return false;
}

class NameReader {
 public:
  explicit NameReader(const Module& module) : module_(module), tree_(module.tree()) {}

  NewestVersions read() {
    for (const LostName& lost : kModules)
      if (tree_.holds(lost.name.substr(lost.name.rfind('.') + 1)) && any_node([&](NodeId node) {
            return is_import(node) && imports_it(tree_, node, lost.name) &&
                   !has_way_around(module_, node);
          }))
        bound(lost.package, lost.last);
    for (const LostName& lost : kFunctions) {
      const std::string_view last = lost.name.substr(lost.name.rfind('.') + 1);
      if (tree_.holds(last) && calls(last, lost.name)) bound(lost.package, lost.last);
    }
    if (says_async() && any_node([&](NodeId node) {
          return tree_[node].kind == Kind::keyword_argument &&
                 tree_.text(tree_.child(node, Field::name)) == "async";
        }))
      bound(&NewestVersions::python, kBeforeAsync);
    if ((tree_.holds("print \"") || tree_.holds("print '")) &&
        any_node([&](NodeId node) { return tree_[node].kind == Kind::print_statement; }))
      bound(&NewestVersions::python, kPython2);
    return found_;
  }

 private:
  bool is_import(NodeId node) const {
    return tree_[node].kind == Kind::import_from || tree_[node].kind == Kind::import_statement;
  }

  bool says_async() const { return tree_.holds("async=") || tree_.holds("async ="); }

  template <typename Accepts>
  bool any_node(Accepts&& accepts) const {
    for (NodeId node = 0; node < tree_.size(); ++node)
      if (accepts(node)) return true;
    return false;
  }

  bool calls(std::string_view last, std::string_view name) const {
    return std::any_of(module_.calls().begin(), module_.calls().end(), [&](const Call& call) {
      return call.name == last && call.path == name && !has_way_around(module_, call.node);
    });
  }

  void bound(VersionOf package, std::int16_t last) {
    found_.*package = std::min(found_.*package, last);
  }

  const Module& module_;
  const SyntaxTree& tree_;
  NewestVersions found_;
};

}  // namespace

NewestVersions versions_by_names(const Module& module) { return NameReader(module).read(); }

}  // namespace bench::diagnose
