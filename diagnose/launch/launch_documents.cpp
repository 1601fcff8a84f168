#include "diagnose/launch/launch_documents.hpp"

#include "diagnose/launch/shell_script.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <utility>

namespace bench::diagnose {
namespace {

constexpr std::string_view kBlanks = " \t";

std::string_view trimmed(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  return text.substr(0, text.find_last_not_of(" \t\r") + 1);
}

bool is_any_of(std::string_view text, std::initializer_list<std::string_view> list) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

void append(std::vector<LaunchLine>& out, std::vector<LaunchLine> more) {
  std::move(more.begin(), more.end(), std::back_inserter(out));
}

// Hands each line to `take`, with its number.
template <typename Take>
void for_each_line(std::string_view text, Take&& take) {
  std::uint32_t number = 1;
  for (std::size_t at = 0; at < text.size(); ++number) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    take(text.substr(at, end - at), number);
    at = end + 1;
  }
}

// Lines of one block, read together as a shell would.
class Block {
 public:
  Block(const std::string& file, std::vector<LaunchLine>& out) : file_(file), out_(out) {}

  void add(std::string_view line, std::uint32_t number) {
    if (text_.empty()) first_ = number;
    text_ += line;
    text_ += '\n';
  }
  bool is_empty() const { return text_.empty(); }
  void close() {
    if (!text_.empty()) append(out_, read_shell_script(file_, text_, first_));
    text_.clear();
  }

 private:
  const std::string& file_;
  std::vector<LaunchLine>& out_;
  std::string text_;
  std::uint32_t first_ = 1;
};

// $ python train.py, > python train.py, ! python train.py: prompts are no part of a command.
std::string_view without_prompt(std::string_view line) {
  line = trimmed(line);
  while (line.starts_with("$ ") || line.starts_with("> ") || line.starts_with("% ") ||
         line.starts_with("!"))
    line = trimmed(line.substr(1));
  return line;
}

// What starts a line of prose that is a command: nothing but a launcher, or a variable before one.
bool begins_a_command(std::string_view line) {
  const std::string_view word = line.substr(0, line.find_first_of(kBlanks));
  return is_any_of(word, {"torchrun", "python", "python3", "accelerate", "horovodrun", "mpirun",
                          "srun", "deepspeed"}) ||
         word.starts_with("CUDA_VISIBLE_DEVICES=") || word.starts_with("OMP_NUM_THREADS=");
}

// `cd tools` and `torchrun --nproc-per-node 4 train.py` within a line of prose.
void read_spans(std::string_view line, std::uint32_t number, Block& block) {
  for (std::size_t at = line.find('`'); at != std::string_view::npos; at = line.find('`', at)) {
    const std::size_t close = std::min(line.find('`', at + 1), line.size());
    const std::string_view span = without_prompt(line.substr(at + 1, close - at - 1));
    if (begins_a_command(span) || span.starts_with("cd ")) block.add(span, number);
    at = std::min(close + 1, line.size());
  }
  block.close();
}

std::vector<LaunchLine> read_readme(const std::string& file, std::string_view text) {
  std::vector<LaunchLine> out;
  Block block(file, out);
  std::string fence;       // that is open
  bool continues = false;  // the last line of prose ended in a backslash
  for_each_line(text, [&](std::string_view line, std::uint32_t number) {
    const std::string_view bare = trimmed(line);
    const bool is_fence = bare.starts_with("```") || bare.starts_with("~~~");
    if (is_fence && (fence.empty() || bare.starts_with(fence))) {
      block.close();
      fence = fence.empty() ? std::string(bare.substr(0, 3)) : std::string();
      return;
    }
    const bool indented = line.starts_with("    ") || line.starts_with("\t");
    const bool is_prompt = bare.starts_with("$ ") && begins_a_command(without_prompt(bare));
    if (!fence.empty() || continues || indented || is_prompt || begins_a_command(bare)) {
      block.add(without_prompt(line), number);
      continues = fence.empty() && bare.ends_with('\\');
      return;
    }
    block.close();
    read_spans(line, number, block);
  });
  block.close();
  for (LaunchLine& launch : out) launch.is_example = true;
  return out;
}

// Commands of a rule that stand together, as what they start.
struct Recipe {
  std::string target;
  int rule = 0;  // how many heads stand above
  std::vector<LaunchLine> lines;
  bool is_chosen = false;  // between ifdef and endif: one of several
};

// train for `train: data` at the head of a rule; empty for an assignment, for `train::`, which
// keeps all its recipes, and for what make works out: $(RUNS:%=train-%).
std::string target_of(std::string_view line) {
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos || line.find('=') < colon) return {};
  const std::string_view behind = line.substr(colon + 1);
  if (behind.starts_with(':') || behind.starts_with('=')) return {};
  const std::string_view target = trimmed(line.substr(0, colon));
  return target.find('$') == target.npos ? std::string(target) : std::string();
}

// Of two recipes for one target make runs the last.
bool is_replaced(const std::vector<Recipe>& recipes, std::size_t index) {
  const Recipe& recipe = recipes[index];
  return !recipe.target.empty() && !recipe.is_chosen &&
         std::any_of(recipes.begin() + static_cast<std::ptrdiff_t>(index) + 1, recipes.end(),
                     [&](const Recipe& later) {
                       return later.target == recipe.target && later.rule != recipe.rule &&
                              !later.is_chosen;
                     });
}

// Recipes stand behind a tab; @ and - before a command are make's own, $$ is a $ of the shell.
std::vector<LaunchLine> read_makefile(const std::string& file, std::string_view text) {
  std::vector<LaunchLine> read;
  Block block(file, read);
  std::vector<Recipe> recipes;
  std::string target;
  int rules = 0;
  int choices = 0;  // ifdef and its kin that are open
  const auto close = [&] {
    if (block.is_empty()) return;
    block.close();
    recipes.push_back({target, rules, std::exchange(read, {}), choices > 0});
  };
  for_each_line(text, [&](std::string_view line, std::uint32_t number) {
    if (!line.starts_with('\t')) {
      close();
      line = trimmed(line);
      if (line.starts_with("if")) ++choices;  // ifdef, ifeq ($(A),b) and their kin
      if (line.starts_with("endif")) --choices;
      if (line.find(':') == line.npos || line.starts_with('#') || line.starts_with("if")) return;
      target = target_of(line);
      ++rules;
      return;
    }
    line = trimmed(line);
    line.remove_prefix(std::min(line.find_first_not_of("@-"), line.size()));
    block.add(line, number);
  });
  close();
  std::vector<LaunchLine> out;
  for (std::size_t i = 0; i < recipes.size(); ++i)
    if (!is_replaced(recipes, i)) append(out, std::move(recipes[i].lines));
  return out;
}

// CMD ["torchrun", "train.py"] and CMD torchrun train.py.
std::vector<LaunchLine> read_dockerfile(const std::string& file, std::string_view text) {
  std::vector<LaunchLine> out;
  Block block(file, out);
  bool continues = false;
  for_each_line(text, [&](std::string_view line, std::uint32_t number) {
    line = trimmed(line);
    std::string command(line);
    if (!continues) {
      const std::string_view word = line.substr(0, line.find_first_of(kBlanks));
      if (!is_any_of(word, {"CMD", "ENTRYPOINT"})) return;
      command = trimmed(line.substr(word.size()));
    }
    continues = command.ends_with('\\');
    // The quotes stay, so that a word may hold blanks.
    if (command.starts_with('['))
      std::replace_if(
          command.begin(), command.end(), [](char c) { return c == '[' || c == ']' || c == ','; },
          ' ');
    block.add(command, number);
    if (!continues) block.close();
  });
  block.close();
  return out;
}

void add_word(std::vector<LaunchWord>& words, std::string text) {
  constexpr std::string_view kWorkspace = "${workspaceFolder}/";
  if (text.starts_with(kWorkspace)) text.erase(0, kWorkspace.size());
  LaunchWord word;
  word.literal = text.find("${") == std::string::npos;
  word.text = std::move(text);
  words.push_back(std::move(word));
}

// .vscode/launch.json: the folder above is where the program starts.
std::vector<LaunchLine> read_editor(const std::string& file, std::string_view text) {
  std::vector<LaunchLine> out;
  const auto json = nlohmann::json::parse(text, nullptr, false, true);
  if (!json.is_object() || !json.contains("configurations")) return out;
  for (const auto& each : json["configurations"]) {
    if (!each.is_object()) continue;
    std::vector<LaunchWord> words;
    if (const auto env = each.find("env"); env != each.end() && env->is_object())
      for (const auto& [name, value] : env->items())
        if (value.is_string()) add_word(words, name + "=" + value.get<std::string>());
    add_word(words, "python");
    for (const char* key : {"module", "program"}) {
      const auto found = each.find(key);
      if (found == each.end() || !found->is_string()) continue;
      if (key == std::string_view("module")) add_word(words, "-m");
      add_word(words, found->get<std::string>());
    }
    if (const auto args = each.find("args"); args != each.end() && args->is_array())
      for (const auto& argument : *args)
        if (argument.is_string()) add_word(words, argument.get<std::string>());
    auto launch = parse_launch(words);
    if (!launch) continue;
    launch->file = file;
    launch->folder = "../";
    out.push_back(std::move(*launch));
  }
  return out;
}

}  // namespace

LaunchDocument launch_document(std::string_view path) {
  std::string name(path.substr(path.rfind('/') + 1));
  if (name == "launch.json")
    return path.ends_with(".vscode/launch.json") ? LaunchDocument::editor : LaunchDocument::none;
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (const std::string_view ending : {".sh", ".bash", ".slurm", ".sbatch", ".slm"})
    if (name.ends_with(ending)) return LaunchDocument::shell;
  if (name == "readme" || name == "readme.md" || name == "readme.rst" || name == "readme.txt")
    return LaunchDocument::readme;
  if (name == "makefile" || name == "gnumakefile") return LaunchDocument::makefile;
  if (name == "dockerfile" || name.ends_with(".dockerfile") || name.starts_with("dockerfile.") ||
      name.starts_with("dockerfile_") || name.starts_with("dockerfile-"))
    return LaunchDocument::dockerfile;
  return LaunchDocument::none;
}

bool may_hold_launches(std::string_view text) {
  static constexpr std::string_view kWords[] = {"python",     "torch",        "mpirun",
                                                "horovodrun", "accelerate",   "deepspeed",
                                                "lightning",  "transformers", "srun"};
  return std::any_of(std::begin(kWords), std::end(kWords), [&](std::string_view word) {
    return text.find(word) != std::string_view::npos;
  });
}

std::vector<LaunchLine> read_launch_document(const std::string& file, std::string_view text) {
  switch (launch_document(file)) {
    case LaunchDocument::shell:
      return read_shell_script(file, text);
    case LaunchDocument::readme:
      return read_readme(file, text);
    case LaunchDocument::makefile:
      return read_makefile(file, text);
    case LaunchDocument::dockerfile:
      return read_dockerfile(file, text);
    case LaunchDocument::editor:
      return read_editor(file, text);
    case LaunchDocument::none:
      break;
  }
  return {};
}

}  // namespace bench::diagnose
