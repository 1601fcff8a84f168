#include "bench/harness/gbench.hpp"

#include "bench/core/error.hpp"
#include "bench/harness/gbench_reporter.hpp"

#include <benchmark/benchmark.h>

#include <cmath>
#include <fstream>
#include <map>
#include <ostream>

namespace bench {
namespace {

void initialize_library(const BenchmarkFlags& flags) {
  // The library's flags are globals that outlive a run; start from the defaults every time.
  std::vector<std::string> texts = {"--benchmark_filter=.", "--benchmark_repetitions=1",
                                    "--benchmark_out="};
  texts.insert(texts.end(), flags.rest.begin(), flags.rest.end());
  if (!flags.out_file.empty()) texts.push_back("--benchmark_out=" + flags.out_file);
  // The library keeps the pointer to the program's name for its reports.
  static std::string program = "bench";
  std::vector<char*> argv = {program.data()};
  for (std::string& text : texts) argv.push_back(text.data());
  int argc = static_cast<int>(argv.size());
  argv.push_back(nullptr);
  benchmark::Initialize(&argc, argv.data());
  if (argc > 1) {
    throw UsageError(std::string(argv[1]) + ": Google Benchmark does not take this value");
  }
}

std::string label_of(const CaseResult& result) {
  return result.simulated ? "simulated on " + result.work.machine : result.verification;
}

// One pass of a case; the final name of a batch search is known only now.
void run_case(benchmark::State& state, const BenchmarkCase& one,
              std::map<std::string, std::string>& final_names) {
  const std::optional<CaseResult> result = one.run();
  if (result) final_names[one.name] = result->name();
  for (auto _ : state) {
    const double ms = result ? result->samples.p50_ms : 0;
    state.SetIterationTime(std::isfinite(ms) ? ms / 1e3 : 0);
  }
  if (!result) return state.SkipWithError("interrupted");
  if (result->status != CaseStatus::done) return state.SkipWithError(result->message.c_str());
  for (const auto& [name, value] : result->metrics) state.counters[name] = value;
  state.SetLabel(label_of(*result));
}

void check_out_file(const std::string& file) {
  if (file.empty()) return;
  if (!std::ofstream(file, std::ios::app)) {
    throw MachineError("--benchmark_out=" + file + ": cannot be written");
  }
}

}  // namespace

void run_benchmarks(const BenchmarkFlags& flags, const std::vector<BenchmarkCase>& cases,
                    const RunContext& context, std::ostream& out) {
  check_out_file(flags.out_file);
  initialize_library(flags);
  std::map<std::string, std::string> final_names;
  const auto final_name = [&](const std::string& name) {
    const auto found = final_names.find(name);
    return found == final_names.end() ? name : found->second;
  };
  for (const BenchmarkCase& one : cases) {
    benchmark::RegisterBenchmark(
        one.name.c_str(), [&](benchmark::State& state) { run_case(state, one, final_names); })
        ->Iterations(1)
        ->UseManualTime()
        ->Unit(benchmark::kMillisecond);
  }
  QuietReporter quiet;
  CaseReporter display(flags.format, context, final_name);
  CaseReporter file(flags.out_format, context, final_name);
  display.SetOutputStream(&out);
  benchmark::BenchmarkReporter* shown = &display;
  if (flags.format.empty()) shown = &quiet;
  benchmark::RunSpecifiedBenchmarks(shown, flags.out_file.empty() ? nullptr : &file);
  benchmark::ClearRegisteredBenchmarks();
}

}  // namespace bench
