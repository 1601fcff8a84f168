#include "report/run_files.hpp"

#include "bench/core/error.hpp"
#include "bench/core/file_text.hpp"
#include "bench/core/run_json.hpp"
#include "report/case_tables.hpp"
#include "report/headline.hpp"
#include "report/html.hpp"

#include <zlib.h>

#include <cerrno>
#include <cstring>
#include <fstream>

namespace bench::report {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTimelineFile = "timeline.json.gz";
constexpr int kGzipWindow = 15 + 16;  // zlib: 15 bits of window, +16 asks for a gzip header

// Symmetric ranks stay collapsed in the trace of a case; timeline.json.gz writes them out.
constexpr std::int32_t kCaseTraceRanks = 1;

// A run is named by its directory or by its results.json.
fs::path directory_of(const fs::path& run) {
  return fs::is_directory(run) ? run : run.parent_path();
}

// A case's name as a file name.
std::string slug(const std::string& name) {
  std::string result;
  for (const char c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '_' || c == '-' || c == '.';
    result += plain ? c : '-';
  }
  return result;
}

std::vector<const CaseResult*> headline_cases(const RunResult& run) {
  std::vector<const CaseResult*> cases;
  if (const auto best = headline(run)) {
    // Single at the same global batch is several times longer and would squeeze these two.
    for (const CaseResult* result : {best->any_data_parallel(), best->distributed}) {
      if (!result->trace_file.empty()) cases.push_back(result);
    }
    return cases;
  }
  // No pair to compare: the last case that has a trace, the largest of most sweeps.
  for (const CaseResult& result : run.cases) {
    if (!result.trace_file.empty()) cases = {&result};
  }
  return cases;
}

std::vector<profiling::TracedStep> read_trace(const fs::path& path) {
  const auto bytes = file_text(path);
  if (!bytes) throw UsageError(path.string() + ": cannot be read");
  return profiling::parse_chrome_trace(gunzip(*bytes, path.string()), path.string());
}

// Of what a run writes, what is there.
std::vector<std::string> present_files(const fs::path& directory) {
  std::vector<std::string> files;
  for (const char* name :
       {"results.json", "samples.jsonl", "timeline.json.gz", "report.html", "findings.sarif"}) {
    if (fs::exists(directory / name)) files.emplace_back(name);
  }
  return files;
}

}  // namespace

void write_file_atomically(const fs::path& path, const std::string& bytes) {
  fs::path temporary = path;
  temporary += ".tmp";
  {
    std::ofstream file(temporary, std::ios::binary | std::ios::trunc);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    file.close();
    if (!file) {
      const std::string reason = std::strerror(errno);
      std::error_code ignored;
      fs::remove(temporary, ignored);
      throw MachineError(path.string() + ": cannot be written: " + reason);
    }
  }
  std::error_code error;
  fs::rename(temporary, path, error);
  if (error) throw MachineError(path.string() + ": cannot be written: " + error.message());
}

std::string gzip(const std::string& bytes) {
  z_stream stream{};
  // Without a file name or time equal input gives equal bytes. The fastest level: a trace is
  // written for every case of a run, and the run waits for it.
  if (deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, kGzipWindow, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
    throw MachineError("zlib cannot start compressing");
  }
  std::string result(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(result.data());
  stream.avail_out = static_cast<uInt>(result.size());
  const int status = deflate(&stream, Z_FINISH);
  result.resize(stream.total_out);
  deflateEnd(&stream);
  if (status != Z_STREAM_END) throw MachineError("zlib cannot compress a trace");
  return result;
}

std::string gunzip(const std::string& bytes, const std::string& origin) {
  z_stream stream{};
  if (inflateInit2(&stream, kGzipWindow) != Z_OK) throw MachineError("zlib cannot start");
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  std::string result;
  std::string chunk(1 << 16, '\0');
  int status = Z_OK;
  while (status == Z_OK) {
    stream.next_out = reinterpret_cast<Bytef*>(chunk.data());
    stream.avail_out = static_cast<uInt>(chunk.size());
    status = inflate(&stream, Z_NO_FLUSH);
    result.append(chunk.data(), chunk.size() - stream.avail_out);
  }
  inflateEnd(&stream);
  if (status != Z_STREAM_END) throw UsageError(origin + ": not a complete gzip file");
  return result;
}

std::string case_title(const Case& work) { return case_text(work); }

void write_case_trace(const fs::path& directory, CaseResult& result,
                      const profiling::Timeline& timeline) {
  const fs::path relative = fs::path("traces") / (slug(result.name()) + ".json.gz");
  std::error_code error;
  fs::create_directories(directory / "traces", error);
  if (error) {
    throw MachineError((directory / "traces").string() + ": cannot be made: " + error.message());
  }
  write_file_atomically(
      directory / relative,
      gzip(profiling::chrome_trace_json({{case_title(result.work), timeline}}, kCaseTraceRanks)));
  result.trace_file = relative.string();
}

void write_results(const fs::path& directory, const RunResult& run) {
  write_file_atomically(directory / "results.json", run_to_json(run));
}

void write_report_files(const fs::path& directory, const RunResult& run) {
  ReportModel model;
  model.runs = {run};
  model.directory = directory.string();
  for (const CaseResult* result : headline_cases(run)) {
    for (auto& step : read_trace(directory / result->trace_file)) {
      model.timelines.push_back(std::move(step));
    }
  }
  if (!model.timelines.empty()) {
    write_file_atomically(directory / kTimelineFile,
                          gzip(profiling::chrome_trace_json(model.timelines)));
  }
  write_file_atomically(directory / "report.html", render_html(model, {}));
}

ReportModel finished_report(RunResult run, const std::string& directory) {
  ReportModel model;
  model.runs.push_back(std::move(run));
  model.directory = directory;
  model.files = present_files(directory);
  return model;
}

ReportModel load_report(const std::vector<std::string>& run_directories) {
  ReportModel model;
  for (const std::string& directory : run_directories) model.runs.push_back(load_run(directory));
  if (run_directories.empty()) return model;
  const fs::path first = directory_of(run_directories.front());
  model.directory = first.string();
  model.files = present_files(first);
  if (fs::exists(first / kTimelineFile)) model.timelines = read_trace(first / kTimelineFile);
  return model;
}

std::vector<profiling::TracedStep> load_steps(const std::string& run_path,
                                              const std::string& only) {
  const RunResult run = load_run(run_path);
  const fs::path directory = directory_of(run_path);
  std::vector<profiling::TracedStep> steps;
  if (only.empty() && fs::exists(directory / kTimelineFile)) {
    steps = read_trace(directory / kTimelineFile);
  }
  for (const CaseResult& result : run.cases) {
    if (only.empty() || result.trace_file.empty()) continue;
    if (result.name().find(only) == std::string::npos) continue;
    for (auto& step : read_trace(directory / result.trace_file)) steps.push_back(std::move(step));
  }
  if (steps.empty()) {
    throw UsageError(directory.string() + ": no timeline" +
                     (only.empty() ? "" : " of a case whose name holds '" + only + "'") +
                     "; simulated cases have one");
  }
  return steps;
}

}  // namespace bench::report
