// SARIF 2.1.0, with rule metadata, fingerprints that survive moved lines, and fixes.
#include "bench/core/fnv_hash.hpp"
#include "diagnose/output/render.hpp"
#include "diagnose/output/sarif_source.hpp"
#include "scenarios/pitfalls/page.hpp"
#include "scenarios/pitfalls/registry.hpp"

#include <nlohmann/json.hpp>

#include <map>
#include <set>

namespace bench::diagnose {
namespace {

using Json = nlohmann::ordered_json;

const char* level_of(Severity severity) {
  switch (severity) {
    case Severity::error:
      return "error";
    case Severity::warning:
      return "warning";
    case Severity::info:
      return "note";
  }
  return "warning";
}

// FNV-1a over the rule, the file and the text of the line without blanks: stable when lines move.
std::string fingerprint(const Finding& finding, int occurrence) {
  FnvHash hash;
  const auto mix = [&](std::string_view text) {
    for (const char c : text) {
      if (c != ' ' && c != '\t') hash.add(static_cast<unsigned char>(c));
    }
  };
  mix(finding.rule);
  mix(finding.file);
  mix(finding.excerpt);
  return hash.hex() + ":" + std::to_string(occurrence);
}

std::string uri_of(std::string_view path) {
  static constexpr char kDigits[] = "0123456789ABCDEF";
  std::string out;
  for (const char raw : path) {
    const auto c = static_cast<unsigned char>(raw);
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       std::string_view("-_.~/").find(raw) != std::string_view::npos;
    if (plain) {
      out += raw;
    } else {
      out += '%';
      out += kDigits[c >> 4U];
      out += kDigits[c & 15U];
    }
  }
  return out;
}

// Relative files stand against %SRCROOT%, which viewers set to the checkout; absolute ones alone.
Json artifact(std::string_view path) {
  while (path.starts_with("./")) path.remove_prefix(2);
  if (path.starts_with('/')) return {{"uri", "file://" + uri_of(path)}};
  return {{"uri", uri_of(path)}, {"uriBaseId", "%SRCROOT%"}};
}

Json rule_metadata(const pitfalls::Rule& rule) {
  const std::string what = pitfalls::section(rule, "What it detects");
  return {{"id", rule.id},
          {"name", rule.name},
          {"shortDescription", {{"text", what.substr(0, what.find(". ") + 1)}}},
          {"fullDescription", {{"text", what}}},
          {"help", {{"text", pitfalls::section(rule, "Fix")}, {"markdown", pitfalls::guide(rule)}}},
          {"defaultConfiguration", {{"level", level_of(rule.severity)}}},
          {"properties",
           {{"tags", {name_of(rule.category)}},
            {"problem.severity", rule.severity == Severity::error     ? "error"
                                 : rule.severity == Severity::warning ? "warning"
                                                                      : "recommendation"}}}};
}

// Message and help as sentences.
std::string text_of(const Finding& finding) {
  if (finding.help.empty()) return finding.message;
  return finding.message + (finding.message.ends_with('.') ? " " : ". ") + finding.help;
}

Json location_of(const Finding& finding) {
  return {{"physicalLocation",
           {{"artifactLocation", artifact(finding.file)},
            {"region",
             {{"startLine", finding.line},
              {"startColumn", finding.column},
              {"endLine", finding.end_line},
              {"endColumn", std::max(finding.end_column, finding.column + 1)}}}}}};
}

Json fix_of(const Fix& fix) {
  std::map<std::string, Json> changes;
  for (const Edit& edit : fix.edits) {
    Json& replacements = changes.try_emplace(edit.file, Json::array()).first->second;
    replacements.push_back(
        {{"deletedRegion", {{"byteOffset", edit.begin}, {"byteLength", edit.end - edit.begin}}},
         {"insertedContent", {{"text", edit.text}}}});
  }
  Json out = Json::array();
  for (auto& [file, replacements] : changes)
    out.push_back({{"artifactLocation", artifact(file)}, {"replacements", replacements}});
  return {{"description", {{"text", fix.title}}}, {"artifactChanges", out}};
}

}  // namespace

Json sarif_of(const std::vector<Finding>& findings) {
  Json rules = Json::array();
  std::map<std::string, std::size_t> index;
  std::set<std::string> used;
  for (const Finding& finding : findings) used.insert(finding.rule);
  for (const pitfalls::Rule& rule : pitfalls::all_rules()) {
    if (!used.contains(std::string(rule.id))) continue;
    index[std::string(rule.id)] = rules.size();
    rules.push_back(rule_metadata(rule));
  }
  Json results = Json::array();
  std::map<std::string, int> seen;
  for (const Finding& finding : findings) {
    const int occurrence = ++seen[finding.rule + finding.file + finding.excerpt];
    Json result = {
        {"ruleId", finding.rule},
        {"ruleIndex", index[finding.rule]},
        {"level", level_of(finding.severity)},
        {"message", {{"text", text_of(finding)}}},
        {"locations", Json::array({location_of(finding)})},
        {"partialFingerprints", {{"primaryLocationLineHash", fingerprint(finding, occurrence)}}},
        {"properties", {{"confidence", name_of(finding.confidence)}}}};
    for (const auto& [key, value] : finding.evidence) result["properties"][key] = value;
    if (finding.fix) result["fixes"] = Json::array({fix_of(*finding.fix)});
    results.push_back(std::move(result));
  }
  return {
      {"$schema", "https://json.schemastore.org/sarif-2.1.0.json"},
      {"version", "2.1.0"},
      {"runs", Json::array({{{"tool", {{"driver", {{"name", "bench diagnose"}, {"rules", rules}}}}},
                             {"columnKind", "unicodeCodePoints"},
                             {"results", results}}})}};
}

std::string render_sarif(const std::vector<Finding>& findings, const RenderContext&) {
  return sarif_of(findings).dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace bench::diagnose
