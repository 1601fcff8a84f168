#include "report/metrics_page.hpp"

#include "bench/core/metric_catalog.hpp"
#include "report/text_table.hpp"

namespace bench::report {

std::string metrics_page() {
  std::string page =
      "# Metrics\n\n"
      "<!-- Generated from bench/core/metric_catalog.cpp; BENCH_UPDATE_GOLDEN=1 build/bin/"
      "report_golden_test rewrites it. -->\n\n"
      "Every finished case of `results.json` carries these counters; `<i>` is a GPU's index. A "
      "case "
      "that was\nskipped, failed or differs from the single-device run has none: no timing without "
      "a right result.\n\n"
      "| metric | unit | better | meaning |\n| --- | --- | --- | --- |\n";
  for (const MetricEntry& entry : metric_catalog()) {
    page += "| `" + std::string(entry.name) + "` | " + metric_hint_name(entry.hint) + " | " +
            metric_better_name(entry.better) + " | " + std::string(entry.description) + " |\n";
  }
  return page +
         "\n## How times are split\n\n"
         "Per GPU, over one step, by interval-set arithmetic on the timeline "
         "(`profiling/analysis.hpp`"
         "):\n\n"
         "- *compute*: a kernel runs;\n"
         "- *exposed communication*: a collective or a copy between GPUs runs and no kernel does;\n"
         "- *exposed host copy*: a copy from or to host memory runs and neither of the two does;\n"
         "- *waiting for the host*: nothing runs on the GPU while its process' host threads work;\n"
         "- *idle*: nothing runs on the GPU, and its host waits, too.\n\n"
         "The five add up to the step. On virtual GPUs the timeline is simulated, and every output "
         "says so.\n\n"
         "## Files of a run\n\n"
         "- `results.json`: Google Benchmark's JSON, with an object `bench` per case for what flat "
         "counters cannot say;\n  `results/schema/results.schema.json` describes it.\n"
         "- `samples.jsonl`: every step of every rank.\n"
         "- `traces/`: a Chrome trace per simulated case, symmetric ranks collapsed into rank 0.\n"
         "- `timeline.json.gz`: the pair that the headline compares, DP beside DDP on the most "
         "GPUs, "
         "in one trace: a\n  process per rank, a track per stream, memory as counters. Both steps "
         "start at zero, so they line up. Open it in\n  ui.perfetto.dev or chrome://tracing; "
         "`bench "
         "trace` exports other cases.\n"
         "- `report.html`: one offline file without scripts, the same tables and charts; `bench "
         "report` renders it again, or\n  Markdown, CSV and JSON.\n\n"
         "To add a metric, see [architecture.md](architecture.md#add-a-metric).\n";
}

}  // namespace bench::report
