#include "scenarios/pitfalls/frameworks/dropped_keys.hpp"

#include "scenarios/pitfalls/program/words.hpp"

namespace bench::pitfalls::trainer {
namespace {

constexpr std::size_t kLookBack = 300;  // lines of any length are asked once for each key in them

std::string_view last_of(std::string_view text, std::size_t at) {
  const std::size_t begin = at < kLookBack ? 0 : at - kLookBack;
  return text.substr(begin, at - begin);
}

// The line up to where a word stands in it.
std::string_view line_before(std::string_view text, std::size_t at) {
  const std::string_view before = last_of(text, at);
  const std::size_t begin = before.rfind('\n') + 1;  // npos + 1 is all of it
  return before.substr(begin);
}

// The quoted key stands where it is taken out: in del x["key"], x.pop("key") and
// x.__delitem__("key"), or among those that a loop leaves out.
bool is_taken_out(std::string_view text, std::size_t at, std::string_view after) {
  const std::string_view before = line_before(text, at);
  if (facts::contains(before, "#")) return false;
  const std::size_t word = before.find_first_not_of(" \t");
  const bool deletes = word != std::string_view::npos && before.substr(word).starts_with("del ");
  if (deletes && before.ends_with('[') && after.starts_with(']')) return true;
  if (before.ends_with(".pop(") || before.ends_with(".__delitem__(")) return true;
  return holds_any(before, {" not in ", " != "}) && facts::contains(last_of(text, at), "for ");
}

}  // namespace

bool drops_key(std::string_view text, const std::string& key) {
  for (const char quote : {'"', '\''}) {
    const std::string quoted = quote + key + quote;
    for (std::size_t at = text.find(quoted); at != std::string_view::npos;
         at = text.find(quoted, at + 1))
      if (is_taken_out(text, at, text.substr(at + quoted.size()))) return true;
  }
  // del cfg.trainer.gpus
  const std::string attribute = "." + key;
  for (std::size_t at = text.find(attribute); at != std::string_view::npos;
       at = text.find(attribute, at + 1)) {
    const std::string_view before = line_before(text, at);
    const std::size_t word = before.find_first_not_of(" \t");
    const std::size_t end = at + attribute.size();
    if (word != std::string_view::npos && before.substr(word).starts_with("del ") &&
        (end == text.size() || text[end] == '\n' || text[end] == ' '))
      return true;
  }
  return false;
}

bool project_drops_key(const Program& program, const std::string& key) {
  return program.any_in_project(
      "drops the key " + key + " of a Trainer",
      [&](std::string_view text) { return says_any(text, {"trainer"}) && drops_key(text, key); });
}

}  // namespace bench::pitfalls::trainer
