// Reporters between Google Benchmark and its own: they give cases the names that users know (the
// library appends "/iterations:1/manual_time") and make its JSON say what ours says: `simulated` as
// a boolean, `skipped` and `skip_message`.
#pragma once

#include "bench/core/case_result.hpp"

#include <benchmark/benchmark.h>

#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

namespace bench {

class CaseReporter final : public benchmark::BenchmarkReporter {
 public:
  // `final_name` maps the name a case was registered under to the one it ended with.
  using FinalName = std::function<std::string(const std::string&)>;

  CaseReporter(const std::string& format, const RunContext& context, FinalName final_name);
  bool ReportContext(const Context& context) override;
  void ReportRuns(const std::vector<Run>& runs) override;
  void Finalize() override;

 private:
  std::unique_ptr<benchmark::BenchmarkReporter> inner_;
  const RunContext& context_;
  FinalName final_name_;
  bool json_;
  bool csv_;
  std::vector<Run> held_;    // csv: its header needs the counters of all runs
  std::ostringstream text_;  // json: changed before it is written
};

// Shows nothing; for runs whose standard output belongs to our own tables.
class QuietReporter final : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>&) override {}
};

// The library's JSON with our keys; text that is no JSON is returned as it is.
std::string with_own_keys(const std::string& json, const RunContext& context);

}  // namespace bench
