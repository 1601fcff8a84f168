#include "diagnose/driver/unused_ignores.hpp"

#include "bench/core/nearest.hpp"
#include "diagnose/driver/notebook.hpp"
#include "scenarios/pitfalls/registry.hpp"

#include <algorithm>
#include <functional>

namespace bench::diagnose {
namespace {

using Visit = std::function<void(std::uint32_t line, const IgnoreComment& comment)>;

void visit_lines(std::string_view text, const Visit& visit) {
  for (std::uint32_t line = 1; !text.empty(); ++line) {
    const std::string_view content = text.substr(0, text.find('\n'));
    for (const IgnoreComment& comment : ignore_comments_of(content)) visit(line, comment);
    text.remove_prefix(std::min(content.size() + 1, text.size()));
  }
}

// Those that are comments to Python; a docstring may show one.
void visit_script(const SyntaxTree& tree, const Visit& visit) {
  for (const SyntaxTree::Comment& each : tree.comments()) {
    const std::string_view text = tree.source().substr(each.begin, each.end - each.begin);
    for (const IgnoreComment& comment : ignore_comments_of(text))
      visit(tree.line_at(each.begin), comment);
  }
}

std::string joined(const std::vector<std::string_view>& words) {
  std::string out;
  for (const std::string_view word : words) out += (out.empty() ? "" : ", ") + std::string(word);
  return out;
}

std::string unknown_rule(std::string_view name) {
  std::vector<std::string> known;
  for (const pitfalls::Rule& rule : pitfalls::all_rules()) {
    known.emplace_back(rule.name);
    known.emplace_back(rule.id);
  }
  return unknown_name_message("rule", name, known, "bench list rules");
}

class Judge {
 public:
  Judge(const std::string& file, Seen seen, const DiagnoseOptions& options, const UsedIgnores& used)
      : file_(file), seen_(seen), options_(options), used_(used) {}

  // What there is to say on a comment; empty when there is nothing.
  std::vector<std::string> on(std::uint32_t line, const IgnoreComment& comment) const {
    return comment.has_list ? on_list(line, comment) : on_all(line);
  }

 private:
  // Rules of launch lines need all that may start the file.
  bool ran(const pitfalls::Rule& rule) const {
    if (seen_ == Seen::no || (seen_ == Seen::itself && rule.id.starts_with("LAU"))) return false;
    return rule.check != nullptr && options_.selection.wants(rule) &&
           !options_.ignores(file_, rule.id);
  }

  std::vector<std::string> on_all(std::uint32_t line) const {
    const auto rules = pitfalls::all_rules();
    const bool all_ran = std::all_of(rules.begin(), rules.end(), [&](const auto& rule) {
      return rule.check == nullptr || ran(rule);
    });
    if (!all_ran || used_.has(file_, line)) return {};
    return {"ignore silences nothing"};
  }

  std::vector<std::string> on_list(std::uint32_t line, const IgnoreComment& comment) const {
    std::vector<std::string> out;
    std::vector<std::string_view> idle;
    bool all_ran = seen_ != Seen::no;
    for (const std::string_view name : comment.rules) {
      const pitfalls::Rule* rule = pitfalls::find_rule(name);
      if (rule == nullptr)
        out.push_back("ignore[" + std::string(name) + "]: " + unknown_rule(name));
      else if (!ran(*rule))
        all_ran = false;
      else if (!used_.has(file_, line, rule->id))
        idle.push_back(name);
    }
    if (all_ran && (!idle.empty() || comment.rules.empty()))
      out.push_back("ignore[" + joined(idle) + "] silences nothing");
    return out;
  }

  const std::string& file_;
  Seen seen_;
  const DiagnoseOptions& options_;
  const UsedIgnores& used_;
};

}  // namespace

std::vector<Notice> unused_ignores(const SourceFile& file, Seen seen, ModuleCache& cache,
                                   const DiagnoseOptions& options, const UsedIgnores& used) {
  std::vector<Notice> out;
  const bool is_script = file.type == FileType::python || file.type == FileType::notebook;
  const auto module = is_script ? cache.load(file.path) : nullptr;
  const auto text = cache.read(file.path);
  if (!text || (is_script && module == nullptr)) return out;
  const bool has_errors = module != nullptr && module->tree().has_errors();
  const Judge judge(file.path, has_errors ? Seen::no : seen, options, used);
  const bool is_notebook = file.type == FileType::notebook;
  const NotebookSource cells = is_notebook ? notebook_source(*text) : NotebookSource();
  const Visit visit = [&](std::uint32_t line, const IgnoreComment& comment) {
    const std::uint32_t in_file = is_notebook ? cells.line(line).in_file : line;
    for (std::string& said : judge.on(line, comment))
      out.push_back({file.path, std::move(said), false, in_file});
  };
  if (is_script)
    visit_script(module->tree(), visit);
  else
    visit_lines(*text, visit);
  return out;
}

}  // namespace bench::diagnose
