// The table of renderers: a new one is its own .cpp and a row here.
#include "bench/core/run_json.hpp"
#include "report/html.hpp"
#include "report/plain_renderers.hpp"
#include "report/renderer.hpp"
#include "report/terminal.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace bench::report {
namespace {

constexpr Renderer kRenderers[] = {
    {"terminal", "the answer, then tables", render_terminal},
    {"html", "one offline file with charts", render_html},
    {"markdown", "tables for a comment or a page", render_markdown},
    {"json", "results.json of the first run", render_json},
    {"csv", "one line per case, every metric", render_csv},
};

}  // namespace

std::span<const Renderer> renderers() { return kRenderers; }

const Renderer* find_renderer(std::string_view name) {
  const auto found = std::find_if(std::begin(kRenderers), std::end(kRenderers),
                                  [&](const Renderer& r) { return r.name == name; });
  return found == std::end(kRenderers) ? nullptr : found;
}

RenderOptions standard_output_options() {
  RenderOptions options;
  const char* no_color = std::getenv("NO_COLOR");
  if (isatty(STDOUT_FILENO) == 0) return options;
  options.color = no_color == nullptr || *no_color == '\0';
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) options.width = size.ws_col;
  return options;
}

}  // namespace bench::report
