// SARIF 2.1.0, with rule metadata, fingerprints that survive moved lines, and fixes.
#include "diagnose/output/fingerprint.hpp"
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

// The vendor's own page on what the rule is about; `help` holds the whole page of the rule.
struct HelpPage {
  std::string_view prefix;  // of the rule's id
  std::string_view uri;
};
constexpr HelpPage kHelpPages[] = {
    {"DDP", "https://docs.pytorch.org/docs/stable/notes/ddp.html"},
    {"DP", "https://docs.pytorch.org/docs/stable/generated/torch.nn.DataParallel.html"},
    {"LAU", "https://docs.pytorch.org/docs/stable/elastic/run.html"},
    {"LIT", "https://lightning.ai/docs/pytorch/stable/common/trainer.html"},
    {"ACC", "https://huggingface.co/docs/accelerate/index"},
    {"HVD", "https://horovod.readthedocs.io/en/stable/pytorch.html"},
};

std::string_view help_uri(std::string_view id) {
  for (const HelpPage& page : kHelpPages)
    if (id.starts_with(page.prefix)) return page.uri;
  return kHelpPages[0].uri;
}

// Code scanning cuts descriptions at 1,024 characters; better at the end of a sentence.
std::string shortened(std::string text) {
  constexpr std::size_t kMost = 1024;
  if (text.size() <= kMost) return text;
  text.resize(text.rfind(". ", kMost - 2) == std::string::npos ? kMost
                                                               : text.rfind(". ", kMost - 2) + 1);
  return text;
}

std::string first_sentence(const std::string& text) { return text.substr(0, text.find(". ") + 1); }

Json rule_metadata(const pitfalls::Rule& rule) {
  const std::string what = shortened(pitfalls::section(rule, "What it detects"));
  return {{"id", rule.id},
          {"name", rule.name},
          {"shortDescription",
           {{"text", what.find(". ") == std::string::npos ? what : first_sentence(what)}}},
          {"fullDescription", {{"text", what}}},
          {"helpUri", help_uri(rule.id)},
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

// Columns count UTF-16 code units; those that are not known are left out, which means whole lines.
Json region_of(const Utf16Region& region) {
  Json out = {{"startLine", region.line}};
  if (region.column > 0) out["startColumn"] = region.column;
  out["endLine"] = std::max(region.end_line, region.line);
  if (region.column > 0 && region.end_column > 0) out["endColumn"] = region.end_column;
  return out;
}

// A region of at least one character, so that every viewer marks something.
Utf16Region shown_region(const Finding& finding) {
  if (finding.region.line == 0)
    return {finding.line, finding.column, finding.end_line,
            std::max(finding.end_column, finding.column + 1)};
  Utf16Region region = finding.region;
  if (region.column > 0 && region.end_line == region.line)
    region.end_column = std::max(region.end_column, region.column + 1);
  return region;
}

Json location_of(const Finding& finding) {
  Json region = region_of(shown_region(finding));
  if (!finding.excerpt.empty()) region["snippet"] = {{"text", finding.excerpt}};
  return {{"physicalLocation",
           {{"artifactLocation", artifact(finding.file)}, {"region", std::move(region)}}}};
}

Json fix_of(const Fix& fix) {
  std::map<std::string, Json> changes;
  for (const Edit& edit : fix.edits) {
    Json& replacements = changes.try_emplace(edit.file, Json::array()).first->second;
    const Json region = edit.region.line > 0 ? region_of(edit.region)
                                             : Json{{"byteOffset", edit.begin},
                                                    {"byteLength", edit.end - edit.begin}};
    replacements.push_back({{"deletedRegion", region}, {"insertedContent", {{"text", edit.text}}}});
  }
  Json out = Json::array();
  for (auto& [file, replacements] : changes)
    out.push_back({{"artifactLocation", artifact(file)}, {"replacements", replacements}});
  return {{"description", {{"text", fix.title}}}, {"artifactChanges", out}};
}

// What the tool has to say on files as a whole: viewers show it beside the run.
Json invocation_of(const std::vector<Notice>& notices) {
  bool all_checked = true;
  Json said = Json::array();
  for (const Notice& notice : notices) {
    all_checked = all_checked && !notice.unchecked;
    Json place = {{"artifactLocation", artifact(notice.file)}};
    if (notice.line > 0) place["region"] = {{"startLine", notice.line}};
    said.push_back({{"level", notice.unchecked ? "error" : "warning"},
                    {"message", {{"text", notice_line(notice)}}},
                    {"locations", Json::array({{{"physicalLocation", std::move(place)}}})}});
  }
  Json out = {{"executionSuccessful", all_checked}};
  if (!said.empty()) out["toolExecutionNotifications"] = std::move(said);
  return out;
}

Json result_of(const Finding& finding, std::size_t rule_index, const std::string& print) {
  Json result = {{"ruleId", finding.rule},
                 {"ruleIndex", rule_index},
                 {"level", level_of(finding.severity)},
                 {"message", {{"text", text_of(finding)}}},
                 {"locations", Json::array()},
                 {"partialFingerprints", {{"primaryLocationLineHash", print}}},
                 {"properties", {{"confidence", name_of(finding.confidence)}}}};
  // A launch line that was given on the command line stands in no file.
  if (finding.file != kLaunchOption) result["locations"].push_back(location_of(finding));
  for (const auto& [key, value] : finding.evidence) result["properties"][key] = value;
  if (finding.fix) result["fixes"] = Json::array({fix_of(*finding.fix)});
  return result;
}

}  // namespace

Json sarif_of(const std::vector<Finding>& findings, const std::vector<Notice>& notices) {
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
  Fingerprints fingerprints;
  for (const Finding& finding : findings)
    results.push_back(
        result_of(finding, index[finding.rule], fingerprints.next(finding, finding.file)));
  const Json driver = {
      {"name", "bench diagnose"}, {"semanticVersion", BENCH_VERSION}, {"rules", rules}};
  const Json root = {{"description", {{"text", "the folder in which bench diagnose ran"}}}};
  return {{"$schema", "https://json.schemastore.org/sarif-2.1.0.json"},
          {"version", "2.1.0"},
          {"runs", Json::array({{{"tool", {{"driver", driver}}},
                                 {"invocations", Json::array({invocation_of(notices)})},
                                 {"originalUriBaseIds", {{"%SRCROOT%", root}}},
                                 {"columnKind", "utf16CodeUnits"},
                                 {"results", results}}})}};
}

std::string render_sarif(const std::vector<Finding>& findings, const RenderContext& context) {
  return sarif_of(findings, context.notices).dump(2, ' ', false, Json::error_handler_t::replace) +
         "\n";
}

}  // namespace bench::diagnose
