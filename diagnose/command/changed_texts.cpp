#include "diagnose/command/changed_texts.hpp"

#include "bench/core/error.hpp"
#include "diagnose/driver/fix.hpp"
#include "diagnose/driver/source_files.hpp"

namespace bench::diagnose {

void ChangedTexts::remember(const std::string& file) {
  if (current_.contains(file)) return;
  if (auto text = reader_(file)) original_[file] = current_[file] = std::move(*text);
}

void ChangedTexts::set(const std::string& file, std::string text) {
  remember(file);
  if (const auto known = current_.find(file); known != current_.end())
    known->second = std::move(text);
}

std::optional<std::string> ChangedTexts::read(const std::string& path) const {
  const auto known = current_.find(path);
  return known != current_.end() ? std::optional(known->second) : reader_(path);
}

void ChangedTexts::hand_over(const Flags& flags, ResultOutput& output) const {
  if (flags.options.given_text && !flags.diff)
    output.write(read(flags.options.given_text->path).value_or(""));
  const bool writes = !flags.diff && !flags.options.given_text;
  // All or none, as far as can be known before.
  for (const auto& [file, text] : current_)
    if (const std::string why = why_not_replaced(file);
        writes && text != original_.at(file) && !why.empty())
      throw UsageError(file + ": cannot be written: " + why + "; no file is changed");
  for (const auto& [file, text] : current_) {
    const std::string& before = original_.at(file);
    if (text == before) continue;
    if (flags.diff)
      output.write(unified_diff(file, before, text));
    else if (writes)
      write_source(file, text);
  }
}

}  // namespace bench::diagnose
