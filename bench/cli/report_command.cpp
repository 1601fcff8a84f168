// bench report: renders stored runs again, in any format, long after they ran.
#include "bench/cli/commands.hpp"
#include "bench/cli/flag_parser.hpp"
#include "bench/core/error.hpp"
#include "bench/core/nearest.hpp"
#include "report/renderer.hpp"
#include "report/run_files.hpp"

#include <cstdio>
#include <filesystem>

namespace bench::cli {
namespace {

constexpr Flag kFlags[] = {
    {"--out", "FILE", "where to write; its ending chooses the format", "flags", "report.html"},
    {"--format", "terminal|html|markdown|json|csv", "how to render", "flags", "markdown"},
};

struct Ending {
  std::string_view extension;
  std::string_view format;
};
constexpr Ending kEndings[] = {{".html", "html"},
                               {".md", "markdown"},
                               {".json", "json"},
                               {".csv", "csv"},
                               {".txt", "terminal"}};

const report::Renderer& renderer_named(const std::string& name) {
  if (const auto* renderer = report::find_renderer(name)) return *renderer;
  std::vector<std::string> known;
  for (const auto& renderer : report::renderers()) known.emplace_back(renderer.name);
  throw UsageError("bench report: --format: " + unknown_name_message("format", name, known));
}

const report::Renderer& chosen_renderer(const Typed& typed) {
  if (const auto format = typed.value("--format")) return renderer_named(*format);
  const auto out = typed.value("--out");
  if (!out) return renderer_named("terminal");
  const std::string extension = std::filesystem::path(*out).extension().string();
  for (const Ending& ending : kEndings) {
    if (extension == ending.extension) return renderer_named(std::string(ending.format));
  }
  throw UsageError("bench report: --out " + *out +
                   ": expected a file ending in .html, .md, .json, .csv or .txt, or --format");
}

}  // namespace

int report_command(const Arguments& arguments) {
  const Typed typed = parse_flags(arguments, kFlags, "bench report");
  if (typed.words.empty()) {
    throw UsageError(
        "bench report: expected one or more runs: directories that hold a results.json");
  }
  const report::Renderer& renderer = chosen_renderer(typed);
  const report::ReportModel model = report::load_report(typed.words);
  if (const auto out = typed.value("--out")) {
    report::write_file_atomically(*out, renderer.render(model, {}));
  } else {
    std::fputs(renderer.render(model, report::standard_output_options()).c_str(), stdout);
  }
  return kExitClean;
}

}  // namespace bench::cli
