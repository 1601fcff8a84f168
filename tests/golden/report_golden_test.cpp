// Every renderer over the same made-up runs.
#include "report/metrics_page.hpp"
#include "report/renderer.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/golden/golden.hpp"
#include "tests/golden/sample_run.hpp"

namespace bench::report {
namespace {

struct Sample {
  const char* name;
  ReportModel (*make)();
};
constexpr Sample kSamples[] = {
    {"dp_vs_ddp", sample_report}, {"sweep", sample_sweep}, {"nothing_finished", sample_failure}};

TEST(ReportGolden, EveryRendererOverEverySample) {
  for (const Renderer& renderer : renderers()) {
    for (const Sample& sample : kSamples) {
      // The large run as JSON would be a golden that nobody reads; the sweep shows the layout.
      if (renderer.name == "json" && std::string(sample.name) == "dp_vs_ddp") continue;
      SCOPED_TRACE(std::string(renderer.name) + " of " + sample.name);
      expect_golden(std::string(sample.name) + "." + std::string(renderer.name),
                    renderer.render(sample.make(), {}));
    }
  }
}

TEST(ReportGolden, TerminalWithColorsAndLittleRoom) {
  expect_golden("dp_vs_ddp_narrow.terminal",
                find_renderer("terminal")->render(sample_report(), {.color = true, .width = 72}));
}

TEST(ReportGolden, NarrowTerminalStaysNarrow) {
  for (const int width : {72, 80, 120}) {
    const std::string text =
        find_renderer("terminal")->render(sample_report(), {.width = width, .show_files = false});
    std::size_t start = 0;
    while (start < text.size()) {
      const std::size_t end = text.find('\n', start);
      EXPECT_LE(end - start, static_cast<std::size_t>(width)) << text.substr(start, end - start);
      start = end + 1;
    }
  }
}

TEST(ReportGolden, SameInputSameBytes) {
  for (const Renderer& renderer : renderers()) {
    EXPECT_EQ(renderer.render(sample_report(), {}), renderer.render(sample_report(), {}));
  }
}

TEST(ReportGolden, MetricsPageIsFresh) { expect_file(BENCH_METRICS_PAGE, metrics_page()); }

}  // namespace
}  // namespace bench::report
