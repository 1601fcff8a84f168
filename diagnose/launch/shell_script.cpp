#include "diagnose/launch/shell_script.hpp"

#include <algorithm>
#include <cctype>
#include <map>
#include <utility>

namespace bench::diagnose {
namespace {

constexpr std::size_t kMaxWords = 2000;  // of one command

bool is_name(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(),
                                      [](unsigned char c) { return std::isalnum(c) || c == '_'; });
}

class ShellReader {
 public:
  ShellReader(const std::string& file, std::string_view text, std::uint32_t first_line)
      : file_(file), text_(text), first_line_(first_line) {}

  std::vector<LaunchLine> read() {
    std::size_t at = 0;
    std::uint32_t number = first_line_;
    while (at < text_.size()) {
      const std::size_t end = std::min(text_.find('\n', at), text_.size());
      std::string_view line = text_.substr(at, end - at);
      at = end + 1;
      add_line(line, number++);
    }
    finish();
    return std::move(out_);
  }

 private:
  void add_line(std::string_view line, std::uint32_t number) {
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    if (line.starts_with("#SBATCH")) {
      note_batch_option(line, number);
      return;
    }
    const bool continued = line.ends_with("\\");
    if (continued) line.remove_suffix(1);
    for (LaunchWord& word : split_words(line, number)) {
      if (word.text == "&&" || word.text == ";" || word.text == "|" || word.text == "||" ||
          word.text == "&" || word.text == "then" || word.text == "do") {
        finish();
        continue;
      }
      const bool ends = word.text.size() > 1 && word.text.ends_with(";");
      if (ends) word.text.pop_back();
      find_program(word);
      substitute(word);
      if (words_.size() < kMaxWords) words_.push_back(std::move(word));
      if (ends) finish();
    }
    if (!continued) finish();
  }

  void note_batch_option(std::string_view line, std::uint32_t number) {
    const auto words = split_words(line.substr(7), number);
    for (std::size_t i = 0; i < words.size(); ++i) {
      LaunchWord word = words[i];
      if (!word.text.starts_with("--")) continue;
      const std::size_t equals = word.text.find('=');
      const std::string name = word.text.substr(2, equals - std::min<std::size_t>(equals, 2));
      if (equals != std::string::npos)
        word.text.erase(0, equals + 1);
      else if (i + 1 < words.size() && !words[i + 1].text.starts_with("-"))
        word = words[++i];  // --gres gpu:1
      word.column += 7;
      batch_[name] = word;
      note_job_variable(name, word);
    }
  }

  // $SLURM_JOB_NUM_NODES of a job that asks for #SBATCH --nodes=1: Slurm sets it.
  void note_job_variable(std::string_view option, LaunchWord word) {
    static constexpr std::pair<std::string_view, std::string_view> kVariables[] = {
        {"nodes", "SLURM_JOB_NUM_NODES"},
        {"nodes", "SLURM_NNODES"},
        {"ntasks", "SLURM_NTASKS"},
        {"ntasks-per-node", "SLURM_NTASKS_PER_NODE"},
        {"gpus-per-node", "SLURM_GPUS_PER_NODE"}};
    const bool is_number =
        !word.text.empty() && word.text.find_first_not_of("0123456789") == std::string::npos;
    if (!word.literal || !is_number) return;
    for (const auto& [name, variable] : kVariables)
      if (name == option) variables_[std::string(variable)] = word;
  }

  // What the job has is what a script sees that is started in it: srun's own options, and for plain
  // python the GPUs.
  void add_batch_options(LaunchLine& launch) const {
    for (const auto& [name, value] : batch_)
      if (launch.launcher == Launcher::srun ||
          (launch.launcher == Launcher::python &&
           (name == "gres" || name == "gpus" || name == "gpus-per-node")))
        launch.flags.try_emplace(name, value);
  }

  // `which torchrun` and $(which torchrun) are torchrun.
  static void find_program(LaunchWord& word) {
    for (const auto& [begin, end] :
         {std::pair<std::string_view, std::string_view>("`which ", "`"),
          std::pair<std::string_view, std::string_view>("$(which ", ")")})
      if (word.text.starts_with(begin) && word.text.ends_with(end)) {
        const std::string name =
            word.text.substr(begin.size(), word.text.size() - begin.size() - end.size());
        if (!is_name(name)) continue;
        word.text = name;
        word.literal = true;
      }
  }

  // $NAME and ${NAME} of variables set to literals above.
  void substitute(LaunchWord& word) const {
    if (word.literal) return;
    std::string out;
    bool literal = true;
    for (std::size_t i = 0; i < word.text.size(); ++i) {
      if (word.text[i] != '$') {
        if (word.text[i] == '`') literal = false;
        out += word.text[i];
        continue;
      }
      const bool braced = i + 1 < word.text.size() && word.text[i + 1] == '{';
      std::size_t end = i + (braced ? 2 : 1);
      const std::size_t begin = end;
      while (end < word.text.size() && is_name(word.text.substr(end, 1))) ++end;
      const auto known = variables_.find(word.text.substr(begin, end - begin));
      const bool closed = !braced || (end < word.text.size() && word.text[end] == '}');
      if (known == variables_.end() || !closed) {
        literal = false;
        out += word.text[i];
        continue;
      }
      out += known->second.text;
      i = end - (braced ? 0 : 1);
    }
    word.text = std::move(out);
    word.literal = literal;
  }

  void finish() {
    if (words_.empty()) return;
    std::vector<LaunchWord> words;
    std::swap(words, words_);
    const bool exports = words.front().text == "export";
    const std::size_t first = exports ? 1 : 0;
    const bool only_assignments =
        std::all_of(words.begin() + static_cast<std::ptrdiff_t>(first), words.end(),
                    [](const LaunchWord& word) {
                      const std::size_t equals = word.text.find('=');
                      return equals != std::string::npos && is_name(word.text.substr(0, equals));
                    });
    if (only_assignments) {
      for (std::size_t i = first; i < words.size(); ++i) assign(words[i], exports);
      return;
    }
    note_folder(words);
    note_source(words);
    auto launch = parse_launch(words);
    if (!launch) return;
    launch->file = file_;
    launch->folder = folder_;
    launch->sources_variables = sources_variables_;
    for (const auto& [name, value] : exported_) launch->environment.try_emplace(name, value);
    add_batch_options(*launch);
    out_.push_back(std::move(*launch));
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

  void assign(LaunchWord word, bool exports) {
    const std::size_t equals = word.text.find('=');
    const std::string name = word.text.substr(0, equals);
    word.text.erase(0, equals + 1);
    variables_.erase(name);
    if (word.literal) variables_[name] = word;
    if (exports) exported_[name] = word;
  }

  const std::string& file_;
  std::string_view text_;
  std::uint32_t first_line_;
  std::string cloned_;  // the folder that `git clone` makes
  std::string folder_;  // of the last `cd` to a place that is written out
  bool sources_variables_ = false;
  std::vector<LaunchWord> words_;
  std::map<std::string, LaunchWord> variables_;
  std::map<std::string, LaunchWord> exported_;
  std::map<std::string, LaunchWord> batch_;
  std::vector<LaunchLine> out_;
};

}  // namespace

std::vector<LaunchLine> read_shell_script(const std::string& file, std::string_view text,
                                          std::uint32_t first_line) {
  return ShellReader(file, text, first_line).read();
}

}  // namespace bench::diagnose
