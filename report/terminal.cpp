#include "report/terminal.hpp"

#include "report/case_tables.hpp"
#include "report/headline.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace bench::report {
namespace {

constexpr std::size_t kTroubleCasesShown = 3;

enum class Style { plain, bold, dim, yellow, red };

std::string styled(Style style, const std::string& text, const RenderOptions& options) {
  constexpr const char* kCodes[] = {"", "\033[1m", "\033[2m", "\033[1;33m", "\033[1;31m"};
  if (!options.color || style == Style::plain || text.empty()) return text;
  return kCodes[static_cast<int>(style)] + text + "\033[0m";
}

// Breaks `text` at spaces so that no line is wider than the terminal; further lines are indented.
std::string wrapped(const std::string& text, std::size_t indent, int width) {
  const std::size_t limit = static_cast<std::size_t>(std::max(width, 40));
  std::string result, line(indent, ' ');
  std::size_t start = 0;
  while (start < text.size()) {
    const std::size_t end = std::min(text.find(' ', start), text.size());
    const std::string word = text.substr(start, end - start);
    const bool fresh = display_width(line) <= indent;
    if (!fresh && display_width(line) + 1 + display_width(word) > limit) {
      result += line + "\n";
      line = std::string(indent, ' ') + word;
    } else {
      line += (fresh ? "" : " ") + word;
    }
    start = end + 1;
  }
  return result + line + "\n";
}

std::string provenance(const RunContext& context, const RenderOptions& options) {
  std::string text;
  if (context.simulated) {
    text += styled(Style::yellow,
                   fmt::format("SIMULATED on {}: times are predictions, not measurements.",
                               context.machine),
                   options) +
            "\n";
  } else if (!context.machine.empty()) {
    text += fmt::format("Measured on {}.\n", context.machine);
  }
  if (!context.machine_note.empty()) text += wrapped(context.machine_note, 0, options.width);
  for (const std::string& note : context.notes) text += wrapped(note, 0, options.width);
  return text;
}

std::string trouble_text(const Trouble& trouble, const RenderOptions& options) {
  const bool alarming = trouble.status != CaseStatus::skipped;
  const std::string label = trouble.status == CaseStatus::wrong    ? "WRONG RESULT"
                            : trouble.status == CaseStatus::failed ? "FAILED"
                                                                   : "skipped";
  std::string text = styled(alarming ? Style::red : Style::dim,
                            fmt::format("{} {} case{}", label, trouble.cases.size(),
                                        trouble.cases.size() == 1 ? "" : "s"),
                            options) +
                     "\n";
  text += wrapped(trouble.message, 2, options.width);
  return text + wrapped(trouble_cases_text(trouble, kTroubleCasesShown), 4, options.width);
}

std::string table_text(const ModelTable& model, const RenderOptions& options) {
  TextTable table = model.table;
  table.fit(options.width);
  std::string text = styled(Style::bold, model.model, options) + "\n";
  const auto lines = table.lines(2);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    text += styled(i == 0 ? Style::dim : Style::plain, lines[i], options) + "\n";
  }
  return text;
}

std::string memory_text(const RunResult& run, const RenderOptions& options) {
  const auto best = headline(run);
  if (!best) return {};
  std::string text;
  for (const CaseResult* result : {best->any_data_parallel(), best->distributed}) {
    if (result->memory.empty()) continue;
    text += styled(Style::bold, "Memory at the peak: " + case_text(result->work), options) + "\n";
    TextTable table = memory_table(*result);
    table.fit(options.width);
    for (const std::string& line : table.lines(2)) text += line + "\n";
    text += "\n";
  }
  return text;
}

std::string run_text(const RunResult& run, const RenderOptions& options) {
  std::string text = provenance(run.context, options) + "\n";
  const auto all_troubles = troubles(run);
  // A wrong result outranks every figure.
  for (const Trouble& trouble : all_troubles) {
    if (trouble.status == CaseStatus::wrong) text += trouble_text(trouble, options) + "\n";
  }
  for (const std::string& sentence : headline_sentences(run)) {
    text += styled(Style::bold, wrapped(sentence, 0, options.width), options);
  }
  text += "\n";
  for (const ModelTable& table : model_tables(run)) text += table_text(table, options) + "\n";
  text += memory_text(run, options);
  for (const Trouble& trouble : all_troubles) {
    if (trouble.status != CaseStatus::wrong) text += trouble_text(trouble, options) + "\n";
  }
  return text;
}

}  // namespace

std::string render_terminal(const ReportModel& model, const RenderOptions& options) {
  std::string text;
  for (const RunResult& run : model.runs) text += run_text(run, options);
  if (options.show_files && !model.directory.empty()) {
    text += fmt::format("Files in {}: results.json, samples.jsonl, timeline.json.gz, report.html\n",
                        model.directory);
  }
  return text;
}

}  // namespace bench::report
