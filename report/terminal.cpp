#include "report/terminal.hpp"

#include "report/answer.hpp"
#include "report/case_tables.hpp"
#include "report/headline.hpp"
#include "report/hints.hpp"
#include "report/pitfall_table.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace bench::report {
namespace {

constexpr std::size_t kTroubleCasesShown = 3;
constexpr std::size_t kTroublesShown = 8;
constexpr int kIndent = 2;
constexpr int kLeastWidth = 40;  // narrower text would be unreadable

enum class Style { plain, bold, dim, yellow, red };

std::string styled(Style style, const std::string& text, const RenderOptions& options) {
  constexpr const char* kCodes[] = {"", "\033[1m", "\033[2m", "\033[1;33m", "\033[1;31m"};
  if (!options.color || style == Style::plain || text.empty()) return text;
  return kCodes[static_cast<int>(style)] + text + "\033[0m";
}

// Breaks `text` at spaces so that no line is wider than the terminal; further lines are indented.
std::string wrapped(const std::string& text, std::size_t indent, int width) {
  const auto limit = static_cast<std::size_t>(std::max(width, kLeastWidth));
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

// The same style on every line, so that a pager that shows some of them shows it, too.
std::string styled_lines(Style style, const std::string& text, const RenderOptions& options) {
  std::string result;
  std::size_t start = 0;
  while (start < text.size()) {
    const std::size_t end = text.find('\n', start);
    result += styled(style, text.substr(start, end - start), options) + "\n";
    start = end + 1;
  }
  return result;
}

// The first line: whether to believe the clock.
std::string provenance(const RunContext& context, const RenderOptions& options) {
  if (context.simulated) {
    const std::string label =
        fmt::format("SIMULATED on {}: times are predictions, not measurements.", context.machine);
    return styled_lines(Style::yellow, wrapped(label, 0, options.width), options);
  }
  if (context.machine.empty()) return {};
  return wrapped(fmt::format("Measured on {}.", context.machine), 0, options.width);
}

// What a reader must know before believing a figure, after the figures.
std::string about_text(const RunResult& run, const RenderOptions& options) {
  std::string text;
  const auto add = [&](const std::string& line) {
    if (!line.empty()) text += wrapped(line, kIndent, options.width);
  };
  add(run.context.machine_note);
  add(error_band_sentence(run));
  for (const std::string& note : run.context.notes) add(note);
  if (text.empty()) return text;
  return styled(Style::bold, "About these figures", options) + "\n" + text + "\n";
}

std::string trouble_text(const Trouble& trouble, const RenderOptions& options) {
  const std::string cases = trouble_cases_text(trouble, kTroubleCasesShown);
  if (trouble.status == CaseStatus::wrong) {
    return styled_lines(
        Style::red,
        wrapped(fmt::format("WRONG RESULT: {}: {}. Times are withheld.", cases, trouble.message), 0,
                options.width),
        options);
  }
  const bool failed = trouble.status == CaseStatus::failed;
  return styled_lines(failed ? Style::red : Style::plain,
                      wrapped(fmt::format("{}: {}", failed ? "FAILED" : "skipped", trouble.message),
                              0, options.width),
                      options) +
         wrapped(cases, 2, options.width);
}

// Failures and skips, at most a few reasons of them: the rest is in results.json.
std::string other_troubles_text(const std::vector<Trouble>& all, const RenderOptions& options) {
  std::string text;
  std::size_t shown = 0, left = 0;
  for (const Trouble& trouble : all) {
    if (trouble.status == CaseStatus::wrong) continue;
    if (shown++ < kTroublesShown) {
      text += trouble_text(trouble, options);
    } else {
      left += trouble.cases.size();
    }
  }
  if (left > 0) text += fmt::format("{} more cases without figures: see results.json\n", left);
  return text.empty() ? text : text + "\n";
}

std::string table_text(const RunResult& run, const ModelTable& model, bool with_answer,
                       const RenderOptions& options) {
  TextTable table = model.table;
  table.fit(options.width - kIndent);
  std::string text = styled(Style::bold, model.model, options) + "\n";
  const auto best = headline(run, model.model);
  if (with_answer && best) text += wrapped(speed_sentence(*best), kIndent, options.width);
  const auto lines = table.lines(kIndent);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    text += styled(i == 0 ? Style::dim : Style::plain, lines[i], options) + "\n";
  }
  return text;
}

std::string memory_text(const RunResult& run, const RenderOptions& options) {
  const auto best = headline(run);
  if (!best || best->distributed->memory.empty()) return {};
  std::string text = styled(Style::bold, memory_table_title(*best), options) + "\n";
  TextTable table = memory_table(*best);
  table.fit(options.width - kIndent);
  for (const std::string& line : table.lines(kIndent)) text += line + "\n";
  return text + "\n";
}

std::string hint_text(const RunResult& run, const RenderOptions& options) {
  const auto sentences = hints(run);
  if (sentences.empty()) return {};
  std::string text = styled(Style::bold, "What stands out", options) + "\n";
  for (const std::string& sentence : sentences) text += wrapped(sentence, kIndent, options.width);
  return text + "\n";
}

std::string laboratory_text(const RunResult& run, const RenderOptions& options) {
  std::string text =
      styled_lines(Style::bold, wrapped(laboratory_sentence(run), 0, options.width), options);
  for (const PitfallRow& row : pitfall_rows(run)) {
    text += "\n" + styled(Style::bold, row.title, options) + "  " +
            styled(row.whole ? Style::dim : Style::red, row.verdict, options) + "\n";
    const auto line = [&](const char* head, const std::string& body) {
      if (!body.empty()) text += wrapped(std::string(head) + body, kIndent, options.width);
    };
    line("mistake: ", row.mistake);
    line("you see: ", row.seen);
    line("cost:    ", row.cost);
    line("fix:     ", row.fix);
  }
  return text + "\n" + about_text(run, options);
}

std::string run_text(const RunResult& run, const RenderOptions& options) {
  if (is_laboratory(run)) return laboratory_text(run, options);
  std::string text = provenance(run.context, options) + "\n";
  const auto all_troubles = troubles(run);
  // A wrong result outranks every figure.
  for (const Trouble& trouble : all_troubles) {
    if (trouble.status == CaseStatus::wrong) text += trouble_text(trouble, options) + "\n";
  }
  for (const std::string& sentence : headline_sentences(run)) {
    text += styled_lines(Style::bold, wrapped(sentence, 0, options.width), options);
  }
  text += "\n";
  const auto tables = model_tables(run);
  for (const ModelTable& table : tables) {
    // With one model its answer is the headline.
    text += table_text(run, table, tables.size() > 1, options) + "\n";
  }
  text += memory_text(run, options);
  text += hint_text(run, options);
  return text + other_troubles_text(all_troubles, options) + about_text(run, options);
}

}  // namespace

std::string render_terminal(const ReportModel& model, const RenderOptions& options) {
  std::string text;
  for (const RunResult& run : model.runs) text += run_text(run, options);
  if (options.show_files && !model.files.empty()) {
    text += fmt::format("Files in {}:\n  {}\n", model.directory, fmt::join(model.files, ", "));
  }
  return text;
}

}  // namespace bench::report
