#include "report/html.hpp"

#include "bench/core/embedded_text.hpp"
#include "bench/core/metric_catalog.hpp"
#include "bench/core/units.hpp"
#include "report/answer.hpp"
#include "report/case_tables.hpp"
#include "report/charts/run_charts.hpp"
#include "report/charts/svg.hpp"
#include "report/charts/timeline_strip.hpp"
#include "report/headline.hpp"
#include "report/hints.hpp"
#include "report/pitfall_table.hpp"

#include <fmt/format.h>

#include <cmath>

namespace bench::report {

std::span<const EmbeddedText> style_sheets();  // generated from style.css

namespace {

constexpr std::size_t kTroubleCasesShown = 12;

// Beside every figure: whether it was simulated or measured.
std::string provenance_tag(bool simulated) {
  return simulated ? "<span class=\"tag\">simulated</span>"
                   : "<span class=\"tag measured\">measured</span>";
}

std::string banner(const RunResult& run) {
  const RunContext& context = run.context;
  std::string text = fmt::format("<div class=\"banner {}-banner\">\n",
                                 context.simulated ? "simulated" : "measured");
  if (context.simulated) {
    text += fmt::format(
        "<p><b>SIMULATED</b> on <code>{}</code>: times are predictions, not "
        "measurements.</p>\n",
        escape_html(context.machine));
  } else {
    text += fmt::format("<p><b>Measured</b> on {}.</p>\n", escape_html(context.machine));
  }
  if (!context.machine_note.empty()) {
    text += fmt::format("<p>{}</p>\n", escape_html(context.machine_note));
  }
  const std::string error_band = error_band_sentence(run);
  if (!error_band.empty()) text += fmt::format("<p>{}</p>\n", escape_html(error_band));
  for (const std::string& note : context.notes)
    text += fmt::format("<p>{}</p>\n", escape_html(note));
  return text + "</div>\n";
}

std::string card(const std::string& number, const std::string& what, bool simulated) {
  return fmt::format("<li><div class=\"number\">{}</div><div class=\"what\">{} {}</div></li>\n",
                     escape_html(number), escape_html(what), provenance_tag(simulated));
}

std::string figure_of(const CaseResult& result, const char* metric) {
  const MetricEntry* entry = find_metric(metric);
  return entry == nullptr ? "-" : format_metric(entry->hint, result.metric(metric));
}

// The few figures that answer the question; only those that exist.
std::string cards(const RunResult& run) {
  const auto best = headline(run);
  if (!best) return {};
  const CaseResult& dp = *best->any_data_parallel();
  const CaseResult& ddp = *best->distributed;
  const std::string dp_title = strategy_title(dp.work.strategy);
  const bool simulated = run.context.simulated;
  const auto has = [](const CaseResult& r, const char* name) {
    return !std::isnan(r.metric(name));
  };
  std::string items =
      card(format_metric(MetricHint::factor, dp.metric("step_ms_p50") / ddp.metric("step_ms_p50")),
           fmt::format("step time of {} over DDP", dp_title), simulated);
  if (has(dp, "primary_imbalance")) {
    items += card(figure_of(dp, "primary_imbalance"),
                  fmt::format("memory of {}'s primary GPU over the others", dp_title), simulated);
  }
  if (has(ddp, "speedup_vs_single")) {
    items += card(figure_of(ddp, "speedup_vs_single"),
                  fmt::format("DDP on {} GPUs over one GPU; {} reaches {}", best->gpus, dp_title,
                              figure_of(dp, "speedup_vs_single")),
                  simulated);
  }
  if (has(ddp, "comm_exposed")) {
    items += card(figure_of(ddp, "comm_exposed"),
                  fmt::format("of DDP's step is exposed communication; {} in {}",
                              figure_of(dp, "comm_exposed"), dp_title),
                  simulated);
  }
  return "<ul class=\"cards\">\n" + items + "</ul>\n";
}

std::string hero(const RunResult& run) {
  const auto sentences = headline_sentences(run);
  std::string text = fmt::format("<p class=\"kicker\">{}</p>\n<h1>{}</h1>\n",
                                 escape_html(run.context.scenario), escape_html(sentences.front()));
  text += "<div class=\"lead\">\n";
  for (std::size_t i = 1; i < sentences.size(); ++i) {
    text += fmt::format("<p>{}</p>\n", escape_html(sentences[i]));
  }
  return text + "</div>\n";
}

std::string chart_figure(const Chart& chart, bool simulated) {
  if (chart.html.empty()) return {};
  return fmt::format(
      "<figure{}>\n<figcaption><h3>{}</h3><span>{}</span>{}</figcaption>\n{}</figure>\n",
      chart.wide ? " class=\"wide\"" : "", escape_html(chart.title), escape_html(chart.subtitle),
      provenance_tag(simulated), chart.html);
}

std::string html_table(const TextTable& table, const std::string& caption,
                       const std::vector<const CaseResult*>& cases) {
  if (table.rows.empty()) return {};
  std::string text =
      "<div class=\"scroll\"><table>\n<caption>" + caption + "</caption>\n<thead><tr>";
  const auto css = [](const Column& column) {
    if (column.prose) return " class=\"name prose\"";
    return column.right ? "" : " class=\"name\"";
  };
  for (const Column& column : table.columns) {
    text += fmt::format("<th scope=\"col\"{}>{}</th>", css(column), escape_html(column.title));
  }
  text += "</tr></thead>\n<tbody>\n";
  for (std::size_t r = 0; r < table.rows.size(); ++r) {
    text += r < cases.size()
                ? fmt::format("<tr class=\"strategy-{}\">", strategy_name(cases[r]->work.strategy))
                : "<tr>";
    for (std::size_t c = 0; c < table.columns.size(); ++c) {
      text += fmt::format("<td{}>{}</td>", css(table.columns[c]), escape_html(table.rows[r][c]));
    }
    text += "</tr>\n";
  }
  return text + "</tbody>\n</table></div>\n";
}

std::string model_section(const RunResult& run, const ModelTable& table) {
  const bool simulated = run.context.simulated;
  std::string text = fmt::format("<h2>{}</h2>\n", escape_html(table.model));
  const auto best = headline(run, table.model);
  // With one model its answer is the page's title.
  if (best && model_tables(run).size() > 1) {
    text += fmt::format("<p>{} {}</p>\n", escape_html(speed_sentence(*best)),
                        provenance_tag(simulated));
  }
  text += "<div class=\"charts\">\n";
  text += chart_figure(batch_chart(run, table.model), simulated);
  text += chart_figure(step_chart(run, table.model), simulated);
  auto throughput = throughput_charts(run, table.model);
  // A narrow chart without a neighbour takes the row.
  if (throughput.size() == 1) throughput.front().wide = true;
  for (const Chart& chart : throughput) text += chart_figure(chart, simulated);
  text += chart_figure(memory_chart(run, table.model), simulated) + "</div>\n";
  text +=
      fmt::format("<details open><summary>All figures of {}</summary>\n", escape_html(table.model));
  text += html_table(table.table, "Medians over the timed steps " + provenance_tag(simulated),
                     table.cases);
  if (best) {
    text +=
        html_table(memory_table(*best),
                   escape_html(memory_table_title(*best)) + " " + provenance_tag(simulated), {});
    text +=
        html_table(phase_table(*best),
                   "Host time by phase, milliseconds of one step " + provenance_tag(simulated), {});
  }
  return text + "</details>\n";
}

std::string timeline_section(const ReportModel& model) {
  const std::string drawing = draw_timelines(model.timelines);
  if (drawing.empty()) return {};
  return "<h2>One step, stream by stream</h2>\n" +
         chart_figure(
             {"Upper lane compute, lower lane communication",
              "all steps on one time axis; timeline.json.gz opens in ui.perfetto.dev", drawing},
             model.timelines.front().timeline.simulated);
}

std::string wrong_banner(const RunResult& run) {
  std::string text;
  for (const Trouble& trouble : troubles(run)) {
    if (trouble.status != CaseStatus::wrong) continue;
    text += fmt::format(
        "<div class=\"banner wrong-banner\" role=\"alert\"><p><b>WRONG RESULT</b> {}</p>\n"
        "<p>{}. Times are withheld.</p></div>\n",
        escape_html(trouble_cases_text(trouble, kTroubleCasesShown)), escape_html(trouble.message));
  }
  return text;
}

std::string trouble_section(const RunResult& run) {
  std::string text;
  for (const Trouble& trouble : troubles(run)) {
    if (trouble.status == CaseStatus::wrong) continue;
    text += fmt::format(
        "<div class=\"trouble {0}\"><p><b>{0}</b>: {1}</p><p class=\"cases\">{2}</p></div>\n",
        case_status_name(trouble.status), escape_html(trouble.message),
        escape_html(trouble_cases_text(trouble, kTroubleCasesShown)));
  }
  return text.empty() ? text : "<h2>Cases without figures</h2>\n" + text;
}

std::string metrics_section() {
  std::string text =
      "<details><summary>What the figures mean</summary>\n<div class=\"scroll\"><table>\n"
      "<thead><tr><th class=\"name\" scope=\"col\">metric</th><th class=\"name\" "
      "scope=\"col\">meaning</th></tr></thead>\n<tbody>\n";
  for (const MetricEntry& entry : metric_catalog()) {
    text +=
        fmt::format("<tr><td class=\"name\"><code>{}</code></td><td class=\"prose\">{}</td></tr>\n",
                    escape_html(entry.name), escape_html(entry.description));
  }
  return text + "</tbody></table></div>\n</details>\n";
}

std::string context_section(const RunContext& context) {
  std::string text = "<details><summary>How this was made</summary>\n<dl>\n";
  const auto row = [&](const std::string& key, const std::string& value) {
    if (!value.empty()) {
      text += fmt::format("<dt>{}</dt><dd>{}</dd>\n", escape_html(key), escape_html(value));
    }
  };
  row("command", context.command);
  row("date", context.date);
  row("machine", context.machine);
  row("device", context.device);
  row("execute", context.execute);
  row("host profile", context.host_profile);
  row("seed", std::to_string(context.seed));
  row("fingerprint", context.fingerprint);
  for (const auto& [name, version] : context.versions) row(name, version);
  return text + "</dl>\n</details>\n";
}

std::string hint_section(const RunResult& run) {
  std::string items;
  for (const std::string& hint : hints(run)) {
    items +=
        fmt::format("<li>{} {}</li>\n", escape_html(hint), provenance_tag(run.context.simulated));
  }
  return items.empty() ? items
                       : "<h2>What stands out</h2>\n<ul class=\"hints\">\n" + items + "</ul>\n";
}

std::string laboratory_section(const RunResult& run) {
  return fmt::format("<section class=\"run\">\n<p class=\"kicker\">{}</p>\n<h1>{}</h1>\n",
                     escape_html(run.context.scenario), escape_html(laboratory_sentence(run))) +
         html_table(pitfall_table(run), "Mistakes made for real, next to their cures", {}) +
         "<h2>Notes</h2>\n" + context_section(run.context) + "</section>\n";
}

std::string run_section(const ReportModel& model, const RunResult& run, bool first) {
  if (is_laboratory(run)) return laboratory_section(run);
  std::string text =
      "<section class=\"run\">\n" + hero(run) + banner(run) + wrong_banner(run) + cards(run);
  if (first) text += timeline_section(model);
  text += hint_section(run);
  for (const ModelTable& table : model_tables(run)) text += model_section(run, table);
  return text + trouble_section(run) + "<h2>Notes</h2>\n" + metrics_section() +
         context_section(run.context) + "</section>\n";
}

std::string page_title(const ReportModel& model) {
  if (model.runs.empty()) return "bench";
  const RunContext& context = model.runs.front().context;
  return fmt::format("{} on {}{} - bench", context.scenario, context.machine,
                     context.simulated ? " (simulated)" : "");
}

}  // namespace

std::string render_html(const ReportModel& model, const RenderOptions&) {
  std::string text = fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<title>{}</title>\n<style>\n",
      escape_html(page_title(model)));
  for (const EmbeddedText& sheet : style_sheets()) text += sheet.text;
  text += "</style>\n</head>\n<body>\n<main>\n";
  for (std::size_t i = 0; i < model.runs.size(); ++i) {
    text += run_section(model, model.runs[i], i == 0);
  }
  return text +
         "<footer>Written by bench. Figures and samples: results.json and samples.jsonl "
         "beside this file.</footer>\n</main>\n</body>\n</html>\n";
}

}  // namespace bench::report
