// GitLab's Code Quality report: https://docs.gitlab.com/ci/testing/code_quality/.
#include "diagnose/output/fingerprint.hpp"
#include "diagnose/output/render.hpp"

#include <nlohmann/json.hpp>

namespace bench::diagnose {
namespace {

using Json = nlohmann::ordered_json;

// Of info, minor, major, critical and blocker.
const char* severity_of(Severity severity) {
  switch (severity) {
    case Severity::error:
      return "critical";
    case Severity::warning:
      return "major";
    case Severity::info:
      return "info";
  }
  return "major";
}

}  // namespace

std::string render_gitlab(const std::vector<Finding>& findings, const RenderContext& context) {
  Json issues = Json::array();
  Fingerprints fingerprints;
  for (const Finding& finding : findings) {
    const bool is_launch = finding.file == kLaunchOption && !context.launched.empty();
    const std::string& path = is_launch ? context.launched : context.lasting_path(finding.file);
    issues.push_back({{"description", finding.rule + ": " + finding.message},
                      {"check_name", finding.rule},
                      {"fingerprint", fingerprints.next(finding, path)},
                      {"severity", severity_of(finding.severity)},
                      {"location", {{"path", path}, {"lines", {{"begin", finding.line}}}}}});
  }
  return issues.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace bench::diagnose
