#include "diagnose/launch/shell_script.hpp"

#include "diagnose/launch/command_wrappers.hpp"
#include "diagnose/launch/shell_variables.hpp"
#include "diagnose/launch/slurm_job.hpp"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <map>
#include <set>
#include <utility>

namespace bench::diagnose {
namespace {

constexpr std::size_t kMaxWords = 2000;  // of one command
constexpr int kMaxDepth = 4;             // of bash -c "bash -c ..."

bool is_any_of(std::string_view text, std::initializer_list<std::string_view> list) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

bool is_name(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(),
                                      [](unsigned char c) { return std::isalnum(c) || c == '_'; });
}

// The name that NAME=... or NAME+=... assigns to; empty for another word.
std::string assigned_name(std::string_view word) {
  const std::size_t equals = word.find('=');
  if (equals == std::string_view::npos) return {};
  std::string_view name = word.substr(0, equals);
  if (name.ends_with('+')) name.remove_suffix(1);
  return is_name(name) ? std::string(name) : std::string();
}

class ShellReader {
 public:
  ShellReader(const std::string& file, std::string_view text, std::uint32_t first_line)
      : file_(file), text_(text), first_line_(first_line) {}

  std::vector<LaunchLine> read() {
    read_text(text_, first_line_, nullptr);
    for (auto& [name, launches] : pending_)
      std::move(launches.begin(), launches.end(), std::back_inserter(out_));
    for (LaunchLine& launch : out_)
      std::erase_if(launch.not_exported,
                    [&](const auto& each) { return all_used_.contains(each.first); });
    return std::move(out_);
  }

 private:
  // `within` is the word that the text stood in; a text with variables has no places of its own.
  void read_text(std::string_view text, std::uint32_t first_line, const LaunchWord* within) {
    ShellLexer lexer(text, first_line);
    for (auto token = lexer.next(); token != ShellLexer::Token::end; token = lexer.next()) {
      if (token == ShellLexer::Token::batch_options) {
        note_batch_options(lexer.word(), batch_);
      } else if (token == ShellLexer::Token::line_end) {
        note_comment(lexer);
        if (array_name_.empty()) finish(false);
        has_comment_ = false;
      } else {
        LaunchWord word = lexer.word();
        line_of_word_ = word.line;
        if (within != nullptr) place(word, *within, first_line);
        take(std::move(word));
      }
    }
    if (!array_name_.empty()) close_array();
    finish(false);
  }

  // Of the line that ends here, or alone on the line above it: that one is about the next
  // assignment and nothing below it.
  void note_comment(const ShellLexer& lexer) {
    const std::uint32_t line = lexer.word().line;
    if (lexer.comment_line() == line && lexer.comment_line() != 0) {
      has_comment_ = !words_.empty();
      const bool tells = tells_why(lexer.comment());
      if (has_comment_) reason_behind_ = tells;
      if (!has_comment_) reason_above_ = tells && line_of_word_ != line;
    } else {
      has_comment_ = false;
      if (words_.empty()) reason_above_ = false;
    }
  }

  static void place(LaunchWord& word, const LaunchWord& within, std::uint32_t first_line) {
    if (word.line == first_line || !within.literal) word.column = within.column;
    if (!within.literal) word.line = within.line;
  }

  void take(LaunchWord word) {
    if (!array_name_.empty()) return take_element(std::move(word));
    if (!word.quoted && take_operator(word)) return;
    const bool ends = !word.ends_quoted && word.text.size() > 1 && word.text.ends_with(";");
    const bool parts = !word.ends_quoted && word.text.size() > 1 && word.text.ends_with("&") &&
                       !word.text.ends_with("&&") && !word.text.ends_with(">&");
    if (ends || parts) word.text.pop_back();
    if (opens_array(word)) return;
    add(std::move(word));
    if (ends || parts) finish(parts);
  }

  void add(LaunchWord word) {
    const bool only_assigns = std::all_of(words_.begin(), words_.end(), [](const auto& each) {
      return is_assignment(each.text) || is_any_of(each.text, {"export", "local", "declare"});
    });
    if (only_assigns && !assigned_name(word.text).empty()) {
      variables_.substitute(word, batch_);
      if (words_.size() < kMaxWords) words_.push_back(std::move(word));
      return;
    }
    for (LaunchWord& each : variables_.expand(std::move(word), batch_))
      if (words_.size() < kMaxWords) words_.push_back(std::move(each));
  }

  // Words of the shell's grammar that end a command or stand in front of one.
  bool take_operator(LaunchWord& word) {
    const std::string& text = word.text;
    if (is_any_of(text, {"&&", ";", "|", "||", "&", "then", "do"})) {
      finish(text == "&");
      if (text == "then" || text == "do") ++stretch_;
      return true;
    }
    if (!words_.empty()) return false;
    if (is_any_of(text, {"else", "elif", "fi", "done", "esac", ";;", "}"})) {
      ++stretch_;
      if (text == "fi")
        for (const std::string& name : variables_.leave_branch())
          if (const auto known = exported_.find(name); known != exported_.end())
            known->second.of_branch = true;
      return true;
    }
    if (text.size() > 1 && text[0] == '(' && text[1] != '(') {  // (cd x && python y)
      word.text.erase(0, 1);
      ++word.column;
      in_subshell_ = true;
    } else if (in_subshell_ && text == ")") {
      in_subshell_ = false;
      return true;
    }
    if (text == "if") variables_.enter_branch();
    return is_any_of(text, {"if", "while", "until", "!", "{", "("});
  }

  // ARGS=(--nproc_per_node 8
  bool opens_array(const LaunchWord& word) {
    const std::string name = assigned_name(word.text);
    const std::size_t equals = word.text.find('=');
    if (name.empty() || word.text.compare(equals + 1, 1, "(") != 0) return false;
    array_name_ = name;
    appends_ = word.text[equals - 1] == '+';
    elements_.clear();
    LaunchWord first = word;
    first.text.erase(0, equals + 2);
    if (!first.text.empty()) take_element(std::move(first));
    return true;
  }

  void take_element(LaunchWord word) {
    const bool closes =
        !word.ends_quoted && word.text.ends_with(')') && !word.text.starts_with("$(");
    if (closes) word.text.pop_back();
    if (!word.text.empty())
      for (LaunchWord& each : variables_.expand(std::move(word), batch_))
        elements_.push_back(std::move(each));
    if (closes || elements_.size() > kMaxWords) close_array();
  }

  void close_array() {
    reason_above_ = false;
    variables_.assign_array(std::exchange(array_name_, {}), std::exchange(elements_, {}), appends_);
  }

  void finish(bool in_background) {
    if (words_.empty()) return;
    std::vector<LaunchWord> words;
    std::swap(words, words_);
    std::set<std::string> used = variables_.take_used();
    all_used_.insert(used.begin(), used.end());
    if (in_subshell_ && !words.back().ends_quoted && words.back().text.ends_with(')') &&
        words.back().text.find('(') == std::string::npos) {
      words.back().text.pop_back();
      in_subshell_ = false;
    }
    if (words.front().text == "wait") ++stretch_;
    exports_all_ =
        exports_all_ || (words.front().text == "set" && words.size() > 1 && words[1].text == "-a");
    if (assign_variables(words, used)) return;
    reason_above_ = false;
    const std::size_t before = out_.size();
    if (const auto nested = nested_command(words); nested && depth_ < kMaxDepth)
      read_nested(words, *nested);
    else
      read_command(words);
    for (std::size_t i = before; i < out_.size(); ++i) out_[i].in_background |= in_background;
    if (out_.size() > before) drop_pending(used);
  }

  void read_nested(const std::vector<LaunchWord>& words, const NestedCommand& nested) {
    std::vector<LaunchWord> prefix = prefix_;
    prefix.insert(prefix.end(), words.begin(),
                  words.begin() + static_cast<std::ptrdiff_t>(nested.begin));
    std::swap(prefix, prefix_);
    ++depth_;
    read_text(nested.text.text, nested.text.line, &nested.text);
    --depth_;
    std::swap(prefix, prefix_);
  }

  void read_command(const std::vector<LaunchWord>& command) {
    note_folder(command);
    note_source(command);
    std::vector<LaunchWord> words = prefix_;
    words.insert(words.end(), command.begin(), command.end());
    auto launch = parse_launch(words);
    if (!launch) return;
    launch->file = file_;
    launch->folder = folder_;
    launch->sources_variables = sources_variables_;
    launch->stretch = stretch_;
    for (const auto& [name, value] : exported_) launch->environment.try_emplace(name, value);
    if (!sources_variables_) launch->not_exported = not_exported_;
    add_batch_options(*launch);
    out_.push_back(std::move(*launch));
  }

  // What the job has is what a script sees that is started in it: srun's own options, and for plain
  // python the GPUs.
  void add_batch_options(LaunchLine& launch) const {
    // A step that says how many tasks it has is not asked for the job's.
    const bool own_tasks = launch.job.contains("ntasks") || launch.job.contains("ntasks-per-node");
    for (const auto& [name, value] : batch_) {
      if (launch.launcher == Launcher::srun ||
          (launch.launcher == Launcher::python &&
           (name == "gres" || name == "gpus" || name == "gpus-per-node")))
        launch.flags.try_emplace(name, value);
      if (!own_tasks || !name.starts_with("ntasks")) launch.job.try_emplace(name, value);
    }
  }

  // A command that is only put into a variable is evidence of how the script is started; what
  // expands the variable into a command says it better.
  void drop_pending(const std::set<std::string>& used) {
    for (const std::string& name : used) pending_.erase(name);
  }

  void note_command_in(const std::string& name, const LaunchWord& value,
                       const std::set<std::string>& used) {
    pending_.erase(name);
    if (depth_ > 0 || value.text.find(".py") == std::string::npos) return;
    std::vector<LaunchLine> kept = std::exchange(out_, {});
    const std::string folder = folder_;
    read_nested({}, {0, value});
    folder_ = folder;
    std::swap(kept, out_);
    if (kept.empty()) return;
    drop_pending(used);
    for (LaunchLine& launch : kept) launch.is_example = true;
    pending_[name] = std::move(kept);
  }

  // OUTPUT=$(torchrun ...) runs it.
  void run_substitution(const LaunchWord& value) {
    if (!value.text.starts_with("$(") || !value.text.ends_with(')') || depth_ >= kMaxDepth ||
        value.text.starts_with("$(("))
      return;
    LaunchWord inner = value;
    inner.text = value.text.substr(2, value.text.size() - 3);
    read_nested({}, {0, inner});
  }

  // A=1 B=2, export A=1, export A
  bool assign_variables(const std::vector<LaunchWord>& words, const std::set<std::string>& used) {
    const std::string& front = words.front().text;
    const bool declares = is_any_of(front, {"declare", "local", "readonly", "typeset"});
    bool exports = front == "export";
    std::size_t first = exports || declares ? 1 : 0;
    for (; declares && first < words.size() && words[first].text.starts_with("-"); ++first)
      exports = exports || words[first].text.find('x') != std::string::npos;
    const bool all =
        std::all_of(words.begin() + static_cast<std::ptrdiff_t>(first), words.end(),
                    [&](const LaunchWord& word) {
                      return !assigned_name(word.text).empty() || (first > 0 && is_name(word.text));
                    });
    if (!all) return false;
    for (std::size_t i = first; i < words.size(); ++i) assign(words[i], exports, used);
    return true;
  }

  void assign(LaunchWord word, bool exports, const std::set<std::string>& used) {
    const std::size_t equals = word.text.find('=');
    if (equals == std::string::npos) {  // export NAME
      not_exported_.erase(word.text);
      if (const LaunchWord* known = exports ? variables_.find(word.text) : nullptr)
        exported_[word.text] = *known;
      return;
    }
    const std::string name = assigned_name(word.text);
    const bool appends = word.text[equals - 1] == '+';
    word.text.erase(0, equals + 1);
    const bool reason_above = std::exchange(reason_above_, false);
    word.is_explained = has_comment_ ? reason_behind_ : reason_above;
    const bool stays = exports || exports_all_ || exported_.contains(name);
    if (stays) exported_[name] = word;
    if (stays || !batch_.empty())
      not_exported_.erase(name);
    else if (name == "CUDA_VISIBLE_DEVICES" && depth_ == 0)
      not_exported_[name] = word;
    if (!word.literal) run_substitution(word);
    note_command_in(name, word, used);
    variables_.assign(name, std::move(word), appends);
  }

  // cd tools, from a folder that is known. A clone is where this file is; where a path of another
  // machine leads is not known.
  void note_folder(const std::vector<LaunchWord>& words) {
    const std::string& last = words.back().text;
    if (words.size() > 2 && words[0].text == "git" && words[1].text == "clone") {
      cloned_ = last.substr(last.rfind('/') + 1);
      cloned_ = cloned_.substr(0, cloned_.rfind(".git"));
    }
    if (words.front().text != "cd" || words.size() != 2 || !words[1].literal) return;
    if (last.starts_with('/') || last.starts_with('~'))
      folder_.clear();
    else if (last != cloned_)
      folder_ += last + '/';
  }

  // source env.sh, and no file that makes an environment of packages.
  void note_source(const std::vector<LaunchWord>& words) {
    if (words.size() < 2 || (words[0].text != "source" && words[0].text != ".")) return;
    for (const std::string_view part : {"activate", "bashrc", "profile", "conda", "venv"})
      if (words[1].text.find(part) != std::string::npos) return;
    sources_variables_ = true;
  }

  const std::string& file_;
  std::string_view text_;
  std::uint32_t first_line_;
  std::string cloned_;  // the folder that `git clone` makes
  std::string folder_;  // of the last `cd` to a place that is written out
  bool sources_variables_ = false;
  bool exports_all_ = false;  // set -a
  bool has_comment_ = false;  // behind the command that ends
  bool reason_behind_ = false;
  bool reason_above_ = false;
  std::uint32_t line_of_word_ = 0;  // of the last one
  bool in_subshell_ = false;
  int depth_ = 0;
  std::uint32_t stretch_ = 0;
  std::vector<LaunchWord> words_;
  std::vector<LaunchWord> prefix_;  // srun -N 2 docker run image, in front of bash -c "..."
  std::string array_name_;          // that is being read; empty outside one
  bool appends_ = false;
  std::vector<LaunchWord> elements_;
  ShellVariables variables_;
  std::set<std::string> all_used_;
  std::map<std::string, LaunchWord> exported_;
  std::map<std::string, LaunchWord> not_exported_;
  JobOptions batch_;
  std::map<std::string, std::vector<LaunchLine>> pending_;  // by the variable that holds them
  std::vector<LaunchLine> out_;
};

}  // namespace

std::vector<LaunchLine> read_shell_script(const std::string& file, std::string_view text,
                                          std::uint32_t first_line) {
  return ShellReader(file, text, first_line).read();
}

}  // namespace bench::diagnose
