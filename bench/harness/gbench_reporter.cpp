#include "bench/harness/gbench_reporter.hpp"

#include <nlohmann/json.hpp>

#include <utility>

namespace bench {
namespace {

using Json = nlohmann::ordered_json;

std::unique_ptr<benchmark::BenchmarkReporter> library_reporter(const std::string& format) {
  if (format == "json") return std::make_unique<benchmark::JSONReporter>();
  if (format == "csv") {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    return std::make_unique<benchmark::CSVReporter>();
#pragma GCC diagnostic pop
  }
  return std::make_unique<benchmark::ConsoleReporter>(benchmark::ConsoleReporter::OO_None);
}

// The library writes NaN and Infinity (the variation of a counter that is zero), which is no JSON.
std::string with_nulls(std::string text) {
  for (const std::string token : {"NaN", "Infinity", "-Infinity"}) {
    const std::string member = "\": " + token;
    std::size_t at = text.find(member);
    while (at != std::string::npos) {
      // A quote after a backslash is inside a string.
      if (at > 0 && text[at - 1] != '\\') text.replace(at + 3, token.size(), "null");
      at = text.find(member, at + 1);
    }
  }
  return text;
}

void add_skip_keys(Json& run) {
  if (!run.value("error_occurred", false)) return;
  run["skipped"] = true;
  run["skip_message"] = run.value("error_message", "");
}

}  // namespace

CaseReporter::CaseReporter(const std::string& format, const RunContext& context,
                           FinalName final_name)
    : inner_(library_reporter(format)),
      context_(context),
      final_name_(std::move(final_name)),
      json_(format == "json"),
      csv_(format == "csv") {}

bool CaseReporter::ReportContext(const Context& context) {
  inner_->SetOutputStream(json_ ? &text_ : &GetOutputStream());
  inner_->SetErrorStream(&GetErrorStream());
  if (!json_ && !csv_ && context_.simulated) {
    GetOutputStream() << "Simulated on " << context_.machine << ": no GPU ran these steps.\n";
  }
  return inner_->ReportContext(context);
}

void CaseReporter::ReportRuns(const std::vector<Run>& runs) {
  std::vector<Run> renamed = runs;
  for (Run& run : renamed) {
    run.run_name.function_name = final_name_(run.run_name.function_name);
    run.run_name.iterations.clear();
    run.run_name.repetitions.clear();
    run.run_name.time_type.clear();
    // A step of several processes has no CPU time of its own; the library requires the column.
    run.cpu_accumulated_time = run.real_accumulated_time;
  }
  if (csv_) {
    held_.insert(held_.end(), renamed.begin(), renamed.end());
  } else {
    inner_->ReportRuns(renamed);
  }
}

void CaseReporter::Finalize() {
  if (csv_ && !held_.empty()) inner_->ReportRuns(held_);
  inner_->Finalize();
  if (json_) GetOutputStream() << with_own_keys(text_.str(), context_);
  GetOutputStream().flush();
}

std::string with_own_keys(const std::string& json, const RunContext& context) {
  Json document = Json::parse(with_nulls(json), nullptr, false);
  if (!document.is_object()) return json;
  Json& head = document["context"];
  head["simulated"] = context.simulated;
  head["scenario"] = context.scenario;
  head["machine"] = context.machine;
  head["device"] = context.device;
  head["execute"] = context.execute;
  head["seed"] = context.seed;
  head["fingerprint"] = context.fingerprint;
  if (auto runs = document.find("benchmarks"); runs != document.end()) {
    for (Json& run : *runs) add_skip_keys(run);
  }
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace bench
