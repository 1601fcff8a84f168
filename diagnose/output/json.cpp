#include "diagnose/output/fingerprint.hpp"
#include "diagnose/output/json_finding.hpp"
#include "diagnose/output/render.hpp"

#include <nlohmann/json.hpp>

namespace bench::diagnose {

using Json = nlohmann::ordered_json;

Json json_of(const Finding& finding) {
  Json out = {{"rule", finding.rule},
              {"name", finding.name},
              {"category", name_of(finding.category)},
              {"severity", name_of(finding.severity)},
              {"confidence", name_of(finding.confidence)},
              {"file", finding.file},
              {"line", finding.line},
              {"column", finding.column},
              {"end_line", finding.end_line},
              {"end_column", finding.end_column},
              {"message", finding.message},
              {"help", finding.help}};
  if (finding.fix) {
    Json edits = Json::array();
    for (const Edit& edit : finding.fix->edits)
      edits.push_back({{"file", edit.file},
                       {"begin_byte", edit.begin},
                       {"end_byte", edit.end},
                       {"text", edit.text}});
    out["fix"] = {{"title", finding.fix->title}, {"edits", edits}};
  }
  Json evidence = Json::object();
  for (const auto& [key, value] : finding.evidence) evidence[key] = value;
  out["evidence"] = evidence;
  return out;
}

std::string render_json(const std::vector<Finding>& findings, const RenderContext& context) {
  Json list = Json::array();
  Fingerprints fingerprints;
  for (const Finding& finding : findings) {
    Json each = json_of(finding);
    const std::string& path = context.lasting_path(finding.file);
    if (path != finding.file) each["repository_path"] = path;
    each["fingerprint"] = fingerprints.next(finding, path);
    list.push_back(std::move(each));
  }
  Json notices = Json::array();
  for (const Notice& notice : context.notices) {
    Json each = {{"file", notice.file}, {"message", notice.text}, {"unchecked", notice.unchecked}};
    if (notice.line > 0) each["line"] = notice.line;
    notices.push_back(std::move(each));
  }
  const Json out = {
      {"version", 1}, {"files", context.files}, {"findings", list}, {"notices", notices}};
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace bench::diagnose
