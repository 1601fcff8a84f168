#include "diagnose/launch/shell_variables.hpp"

#include <algorithm>
#include <cctype>

namespace bench::diagnose {
namespace {

constexpr std::size_t kLongestText = 16384;  // of one value, however often it is appended to

constexpr std::size_t kMostElements = 500;  // of an array, likewise

bool is_name_letter(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// Flags whose values are not all known still say which flags there are: "--nproc_per_node $N".
bool says_more_than_its_name(const LaunchWord& value) {
  const auto pieces = split_value(value);
  return pieces.size() > 1 || value.text.starts_with("-");
}

struct Reference {
  std::string name;
  std::size_t end = 0;  // behind it
  bool is_array = false;
};

// $NAME, ${NAME}, ${NAME[@]} and ${NAME[*]} at a dollar sign; an empty name for anything else.
Reference reference_at(std::string_view text, std::size_t at) {
  Reference out;
  const bool is_braced = at + 1 < text.size() && text[at + 1] == '{';
  const std::size_t begin = at + (is_braced ? 2 : 1);
  std::size_t end = begin;
  while (end < text.size() && is_name_letter(text[end])) ++end;
  out.end = end;
  if (is_braced) {
    const std::string_view rest = text.substr(end);
    out.is_array = rest.starts_with("[@]}") || rest.starts_with("[*]}");
    if (!out.is_array && !rest.starts_with("}")) return out;
    out.end += out.is_array ? 4 : 1;
  }
  out.name = text.substr(begin, end - begin);
  return out;
}

std::string joined(const std::vector<LaunchWord>& words) {
  std::string out;
  for (const LaunchWord& word : words) out += (out.empty() ? "" : " ") + word.text;
  return out;
}

}  // namespace

void ShellVariables::assign(const std::string& name, LaunchWord value, bool appends) {
  const auto known = scalars_.find(name);
  if (appends && known == scalars_.end()) return;
  if (appends) {
    value.text = known->second.text + value.text;
    value.literal = value.literal && known->second.literal;
    value.of_branch = value.of_branch || known->second.of_branch;
  } else {
    note_assignment(name);
  }
  arrays_.erase(name);
  scalars_.erase(name);
  if (value.text.size() <= kLongestText && (value.literal || says_more_than_its_name(value)))
    scalars_[name] = std::move(value);
}

void ShellVariables::assign_array(const std::string& name, std::vector<LaunchWord> elements,
                                  bool appends) {
  if (appends && !arrays_.contains(name)) return;
  std::vector<LaunchWord>& array = arrays_[name];
  if (!appends) array.clear();
  const std::size_t room = kMostElements - std::min(kMostElements, array.size());
  elements.resize(std::min(elements.size(), room));
  array.insert(array.end(), elements.begin(), elements.end());
  scalars_.erase(name);
}

void ShellVariables::note_assignment(const std::string& name) {
  if (branches_.empty())
    of_branch_.erase(name);
  else
    branches_.back().insert(name);
}

std::set<std::string> ShellVariables::leave_branch() {
  if (branches_.empty()) return {};
  std::set<std::string> names = std::move(branches_.back());
  branches_.pop_back();
  std::set<std::string>& around = branches_.empty() ? of_branch_ : branches_.back();
  around.insert(names.begin(), names.end());
  return names;
}

const LaunchWord* ShellVariables::find(const std::string& name) const {
  const auto known = scalars_.find(name);
  return known == scalars_.end() ? nullptr : &known->second;
}

bool ShellVariables::append_value(const std::string& name, const JobOptions& job, LaunchWord& out) {
  used_.insert(name);
  if (const LaunchWord* known = find(name)) {
    out.text += known->text;
    out.of_branch = out.of_branch || known->of_branch || of_branch_.contains(name);
    return true;
  }
  if (const auto array = arrays_.find(name); array != arrays_.end()) {
    out.text += joined(array->second);
    return true;
  }
  const auto slurm = slurm_variable(job, name);
  if (slurm) out.text += slurm->text;
  return slurm.has_value();
}

void ShellVariables::substitute(LaunchWord& word, const JobOptions& job) {
  if (word.literal) return;
  LaunchWord out = word;
  out.text.clear();
  for (std::size_t i = 0; i < word.text.size();) {
    // $(...) is run by the shell; what it prints is not known.
    const std::size_t end =
        word.text[i] == '$' || word.text[i] == '`' ? end_of_substitution(word.text, i) : i + 1;
    if (word.text[i] != '$' || end > i + 1) {
      out.text += word.text.substr(i, end - i);
      i = end;
      continue;
    }
    const Reference reference = reference_at(word.text, i);
    if (reference.name.empty() || out.text.size() > kLongestText ||
        !append_value(reference.name, job, out)) {
      out.text += word.text[i++];
      continue;
    }
    i = reference.end;
  }
  word = std::move(out);
  word.literal = word.text.find_first_of("$`") == std::string::npos;
}

const std::vector<LaunchWord>* ShellVariables::array_of(const LaunchWord& word) {
  if (word.literal || !word.text.starts_with('$')) return nullptr;
  const Reference reference = reference_at(word.text, 0);
  const auto known = arrays_.find(reference.name);
  if (reference.end != word.text.size() || known == arrays_.end()) return nullptr;
  used_.insert(reference.name);
  return &known->second;
}

std::vector<LaunchWord> ShellVariables::expand(LaunchWord word, const JobOptions& job) {
  if (const auto* array = array_of(word)) {
    std::vector<LaunchWord> out = *array;
    for (LaunchWord& each : out) {
      each.line = word.line;
      each.column = word.column;
    }
    return out;
  }
  const bool may_split = !word.literal && !word.quoted;
  substitute(word, job);
  if (!may_split) return {std::move(word)};
  auto pieces = split_value(word);
  if (pieces.empty()) pieces.push_back(std::move(word));
  return pieces;
}

}  // namespace bench::diagnose
