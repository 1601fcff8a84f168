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

Json parse(const std::string& file) {
  const auto text = file_text(file);
  if (!text)
    throw UsageError("--baseline " + file +
                     (fs::exists(file) ? ": cannot be read" : ": no such file"));
  Json document;
  try {
    document = Json::parse(*text);
  } catch (const Json::parse_error& error) {
    const std::size_t at = std::min<std::size_t>(error.byte, text->size());
    const auto line =
        std::count(text->begin(), text->begin() + static_cast<std::ptrdiff_t>(at), '\n');
    refuse(file + ":" + std::to_string(line + 1), "is no JSON");
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

std::string absolute(const std::string& path) {
  std::error_code error;
  return fs::absolute(path, error).lexically_normal().string();
}

}  // namespace

Baseline::Baseline(const std::string& file) {
  const Json document = parse(file);
  std::size_t index = 0;
  for (const Json& finding : document["findings"]) {
    const std::string where = "findings[" + std::to_string(index++) + "]";
    Entry entry{string_of(finding, "rule"), string_of(finding, "file"),
                string_of(finding, "severity")};
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
  for (const std::string& file : result.checked) checked.insert(absolute(file));
  const std::string root = repository_around("x");
  const auto was_looked_at = [&](const std::string& file) {
    const std::string from_root = absolute((fs::path(root) / file).string());
    std::error_code error;
    if (checked.contains(absolute(file)) || checked.contains(from_root)) return true;
    return !fs::exists(file, error) && !fs::exists(from_root, error);
  };
  const auto could_be_found = [&](const Entry& entry) {
    const pitfalls::Rule* rule = pitfalls::find_rule(entry.rule);
    if (rule == nullptr) return true;  // of an earlier version
    return options.selection.wants(*rule) && !options.ignores(entry.file, entry.rule) &&
           !(entry.severity == "info" && options.selection.at_least > Severity::info) &&
           !(entry.severity == "warning" && options.selection.at_least > Severity::warning) &&
           was_looked_at(entry.file);
  };
  std::size_t number = 0;
  for (const auto& [hash, entries] : left_)
    number +=
        static_cast<std::size_t>(std::count_if(entries.begin(), entries.end(), could_be_found));
  return number;
}

}  // namespace bench::diagnose
