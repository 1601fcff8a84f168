// Where results go: to standard output, or with --output-file into a file that is replaced at the
// end, so that an older one survives whatever fails before.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace bench::diagnose {

class ResultOutput {
 public:
  // Throws MachineError where the file cannot be written, before any work is done for it.
  explicit ResultOutput(std::optional<std::string> file);

  // Colours are for terminals.
  bool wants_color() const;
  void write(std::string_view text);
  // Throws MachineError.
  void finish();

 private:
  std::optional<std::string> file_;
  std::string text_;  // for the file
};

}  // namespace bench::diagnose
