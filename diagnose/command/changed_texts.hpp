// Files as they are and as an action leaves them, until they are written, shown as a diff or, where
// the text came from standard input, handed back.
#pragma once

#include "diagnose/command/flags.hpp"
#include "diagnose/command/result_output.hpp"
#include "diagnose/driver/module_cache.hpp"

#include <map>
#include <optional>
#include <string>

namespace bench::diagnose {

class ChangedTexts {
 public:
  explicit ChangedTexts(Reader reader) : reader_(std::move(reader)) {}

  // From now on the file is one that may change.
  void remember(const std::string& file);
  void set(const std::string& file, std::string text);
  const std::map<std::string, std::string>& current() const { return current_; }
  std::optional<std::string> read(const std::string& path) const;

  void hand_over(const Flags& flags, ResultOutput& output) const;

 private:
  Reader reader_;
  std::map<std::string, std::string> original_;
  std::map<std::string, std::string> current_;
};

}  // namespace bench::diagnose
