#include "tests/fuzz/diagnose_input.hpp"

#include "diagnose/driver/diagnose.hpp"
#include "diagnose/driver/fix.hpp"
#include "diagnose/output/render.hpp"

#include <map>

namespace bench::diagnose {
namespace {

std::size_t run_as(const std::string& name, const std::string& text) {
  const std::map<std::string, std::string> files{{name, text}};
  const auto findings = diagnose_texts(files, name, {});
  for (const std::string& format : format_names())
    find_format(format)->render(findings, {1, false});
  std::size_t applied = 0;
  apply_fixes(findings, files, applied);
  return findings.size();
}

}  // namespace

std::size_t run_as_script(const std::string& text) { return run_as("train.py", text); }

std::size_t run_on_every_kind(std::string_view bytes) {
  const std::string text(bytes);
  std::size_t found = 0;
  for (const char* name :
       {"train.py", "train.ipynb", "run.sh", "config.yaml", "config.toml", "config.json"})
    found += run_as(name, text);
  return found;
}

}  // namespace bench::diagnose
