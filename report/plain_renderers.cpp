#include "report/plain_renderers.hpp"

#include "bench/core/run_json.hpp"
#include "report/answer.hpp"
#include "report/case_tables.hpp"
#include "report/headline.hpp"
#include "report/hints.hpp"
#include "report/pitfall_table.hpp"

#include <fmt/format.h>

#include <cmath>
#include <set>

namespace bench::report {
namespace {

constexpr std::size_t kTroubleCasesShown = 10;

// RFC 4180: quotes around what holds a comma, a quote or a line break; quotes doubled.
std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + "\"";
}

std::string csv_line(const CaseResult& result, const RunContext& context,
                     const std::set<std::string>& metrics) {
  const Case& work = result.work;
  std::string line = fmt::format("{},{},{},{},{},{},{},{},{},{}", csv_cell(result.name()),
                                 csv_cell(context.scenario), csv_cell(work.model.name),
                                 strategy_name(work.strategy), work.world_size(), work.batch,
                                 result.simulated ? "true" : "false", csv_cell(context.machine),
                                 case_status_name(result.status), csv_cell(result.message));
  for (const std::string& name : metrics) {
    const double value = result.metric(name);
    line += std::isnan(value) ? "," : fmt::format(",{}", value);
  }
  return line + "\n";
}

std::string markdown_run(const RunResult& run) {
  std::string text = fmt::format("## {}\n\n", run.context.scenario);
  if (is_laboratory(run))
    return text + laboratory_sentence(run) + "\n\n" + pitfall_table(run).markdown();
  if (run.context.simulated) {
    text += fmt::format("**SIMULATED on {}: times are predictions, not measurements.**\n\n",
                        run.context.machine);
    const std::string error_band = error_band_sentence(run);
    if (!error_band.empty()) text += error_band + "\n\n";
  }
  for (const std::string& sentence : headline_sentences(run)) text += "- " + sentence + "\n";
  text += "\n";
  for (const ModelTable& model : model_tables(run)) {
    text += fmt::format("### {}\n\n{}\n", model.model, model.table.markdown());
  }
  for (const std::string& hint : hints(run)) text += "- " + hint + "\n";
  for (const Trouble& trouble : troubles(run)) {
    text += fmt::format("- **{}** ({}): {} ({})\n", case_status_name(trouble.status),
                        trouble.cases.size(), trouble.message,
                        trouble_cases_text(trouble, kTroubleCasesShown));
  }
  return text;
}

}  // namespace

std::string render_json(const ReportModel& model, const RenderOptions&) {
  return model.runs.empty() ? "" : run_to_json(model.runs.front());
}

std::string render_csv(const ReportModel& model, const RenderOptions&) {
  std::set<std::string> metrics;
  for (const RunResult& run : model.runs) {
    for (const CaseResult& result : run.cases) {
      for (const auto& [name, value] : result.metrics) metrics.insert(name);
    }
  }
  std::string text = "name,scenario,model,strategy,gpus,batch,simulated,machine,status,message";
  for (const std::string& name : metrics) text += "," + name;
  text += "\n";
  for (const RunResult& run : model.runs) {
    for (const CaseResult& result : run.cases) text += csv_line(result, run.context, metrics);
  }
  return text;
}

std::string render_markdown(const ReportModel& model, const RenderOptions&) {
  std::string text;
  for (const RunResult& run : model.runs) text += markdown_run(run);
  return text;
}

}  // namespace bench::report
