#include "diagnose/driver/baseline.hpp"

#include "bench/core/error.hpp"
#include "bench/core/file_text.hpp"
#include "diagnose/output/fingerprint.hpp"
#include "scenarios/pitfalls/registry.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <set>

namespace bench::diagnose {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

constexpr int kVersion = 1;  // of the JSON that render_json() writes

[[noreturn]] void refuse(const std::string& file, const std::string& what) {
  throw UsageError("--baseline " + file + ": " + what +
                   "; expected what `bench diagnose --format json` writes");
}

// There is nothing of that name; not so where nobody can tell.
bool is_absent(const std::string& path) {
  std::error_code error;
  return fs::status(path, error).type() == fs::file_type::not_found;
}

Json parse(const std::string& file) {
  const auto text = file_text(file);
  if (!text)
    throw UsageError("--baseline " + (file.empty() ? "''" : file) +
                     (is_absent(file) ? ": no such file" : ": cannot be read"));
  Json document;
  try {
    document = Json::parse(*text);
  } catch (const Json::parse_error& error) {
    const std::size_t at = std::min<std::size_t>(error.byte, text->size());
    const auto line =
        std::count(text->begin(), text->begin() + static_cast<std::ptrdiff_t>(at), '\n');
    refuse(file + ":" + std::to_string(line + 1), "is no JSON");
  } catch (const Json::exception&) {
    refuse(file, "holds a number that is out of range");
  }
  const bool is_result = document.is_object() && document.contains("version") &&
                         document.contains("findings") && document["findings"].is_array();
  if (!is_result) refuse(file, "holds no findings");
  if (document["version"] != kVersion)
    refuse(file, "has version " +
                     document["version"].dump(-1, ' ', false, Json::error_handler_t::replace) +
                     " instead of " + std::to_string(kVersion));
  return document;
}

std::string string_of(const Json& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  return object.is_object() && found != object.end() && found->is_string()
             ? found->get<std::string>()
             : std::string();
}

// "0123456789abcdef:2" without its number; empty where it is something else.
std::string hash_of(const std::string& fingerprint) {
  const std::string hash = fingerprint.substr(0, fingerprint.find(':'));
  const bool is_hash = hash.size() == 16 && hash.find_first_not_of("0123456789abcdef") == hash.npos;
  return is_hash ? hash : std::string();
}

}  // namespace

Baseline::Baseline(const std::string& file) {
  const Json document = parse(file);
  std::size_t index = 0;
  for (const Json& finding : document["findings"]) {
    const std::string where = "findings[" + std::to_string(index++) + "]";
    Entry entry{string_of(finding, "rule"), string_of(finding, "file"),
                string_of(finding, "repository_path"), string_of(finding, "severity"),
                string_of(finding, "confidence")};
    if (entry.rule.empty() || entry.file.empty()) refuse(file, where + " has no rule or no file");
    const std::string hash = hash_of(string_of(finding, "fingerprint"));
    if (hash.empty()) refuse(file, where + " has no fingerprint, as in earlier versions");
    left_[hash].push_back(std::move(entry));
  }
}

std::size_t Baseline::take_known(DiagnoseResult& result) {
  return std::erase_if(result.findings, [&](const Finding& finding) {
    const auto known = left_.find(line_fingerprint(finding, paths_.of(finding.file)));
    if (known == left_.end()) return false;
    known->second.pop_back();
    if (known->second.empty()) left_.erase(known);
    return true;
  });
}

std::size_t Baseline::gone(const DiagnoseResult& result, const DiagnoseOptions& options) const {
  std::set<std::string> checked;
  for (const std::string& file : result.checked) checked.insert(absolute_path(file));
  for (const Notice& notice : result.notices)
    if (notice.unchecked) checked.erase(absolute_path(notice.file));
  const fs::path root = repository_around("x");
  const auto was_looked_at = [&](const Entry& entry) {
    if (entry.file.starts_with('<'))  // no file: --launch, standard input
      return entry.file == kLaunchOption ? options.launch.has_value()
                                         : result.checked.contains(entry.file);
    std::vector<std::string> paths{absolute_path((root / entry.lasting_path()).string())};
    if (entry.repository_path.empty()) paths.push_back(absolute_path(entry.file));
    return std::all_of(paths.begin(), paths.end(), is_absent) ||
           std::any_of(paths.begin(), paths.end(),
                       [&](const std::string& path) { return checked.contains(path); });
  };
  const auto could_be_found = [&](const Entry& entry) {
    const pitfalls::Rule* rule = pitfalls::find_rule(entry.rule);
    if (rule == nullptr) return true;  // of an earlier version
    return options.selection.wants(*rule) && !options.ignores(entry.file, entry.rule) &&
           options.selection.shows(
               severity_named(entry.severity).value_or(Severity::error),
               confidence_named(entry.confidence).value_or(Confidence::certain)) &&
           was_looked_at(entry);
  };
  std::size_t number = 0;
  for (const auto& [hash, entries] : left_)
    number +=
        static_cast<std::size_t>(std::count_if(entries.begin(), entries.end(), could_be_found));
  return number;
}

}  // namespace bench::diagnose
