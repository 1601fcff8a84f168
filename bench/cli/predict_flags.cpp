#include "bench/cli/predict_flags.hpp"

#include "bench/cli/run_flags.hpp"
#include "bench/core/error.hpp"
#include "bench/core/strategy.hpp"
#include "bench/plan/setting_table.hpp"

#include <charconv>
#include <cmath>
#include <cstdio>

namespace bench::cli {
namespace {

constexpr std::string_view kGroup = "predict";
constexpr std::int64_t kDefaultBatchPerGpu = 32;
constexpr double kLeastMs = 1e-6;
constexpr double kLeastSpeed = 1e-3;
constexpr double kMostNumber = 1e9;
constexpr double kMostJitter = 1;
constexpr Flag kOwnFlags[] = {
    {"--machine", "M,...", "names of `bench list machines`, 4xv100-sxm2, 16xdgx-a100, TOML files",
     kGroup, "16xdgx-a100"},
    {"--measured-single", "MS",
     "the measured step of one GPU at this batch per GPU; the rest is predicted from it", kGroup,
     "97"},
    {"--max-batch", "", "also search the largest batch per GPU that fits", kGroup, "true"},
    {"--precision", "P,...",
     "float32, tf32 (its matrix products too), or autocast's float16 or bfloat16", kGroup,
     "float32,bfloat16"},
    {"--hook", "H,...", "DDP's communication hook: none, fp16_compress, bf16_compress", kGroup,
     "none,fp16_compress"},
    {"--stragglers", "FACTOR", "the kernels of one rank take this many times as long", kGroup,
     "1.2"},
    {"--rank-speeds", "SPEED[xCOUNT],...",
     "unequal GPUs or nodes: relative speed of DDP's ranks in order, 1x8,0.7x8; the rest run at 1",
     kGroup, "1x4,0.8x2"},
    {"--jitter", "SHARE",
     "relative standard deviation between equal ranks (default: the machine's)", kGroup, "0.03"},
    {"--draw-jitter", "", "draw the ranks' differences from --seed instead of their expectation",
     kGroup, "true"},
    {"--exact-recordings", "", "record every case instead of editing one recording into many",
     kGroup, "true"},
    {"--format", "text|json|html", "what to print", kGroup, "json"},
    {"--out", "FILE", "write the answer there: .html with a chart, .json, or text", kGroup,
     "prediction.json"},
    {"--recordings", "DIR", "where recorded steps are kept (default: below ~/.cache)", kGroup,
     "recordings"},
    {"--worker", "PROGRAM", "", kGroup, "bench-worker"},
};

// Settings that say nothing about a simulated step.
bool is_irrelevant(const Setting& row) {
  constexpr std::string_view kIrrelevant[] = {"description", "steps", "warmup",
                                              "execute",     "data",  "data_workers"};
  for (const std::string_view key : kIrrelevant) {
    if (row.key == key) return true;
  }
  return row.flag.empty();
}

double number(const std::string& flag, const std::string& text, double least,
              double most = kMostNumber) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() ||
      !(value >= least && value <= most)) {
    char expected[64];
    std::snprintf(expected, sizeof expected, ": expected a number from %g to %g, found '", least,
                  most);
    throw UsageError(flag + expected + text + "'");
  }
  return value;
}

std::vector<std::string> parts(const std::string& text) {
  std::vector<std::string> all(1);
  for (const char c : text) {
    if (c == ',') {
      all.emplace_back();
    } else {
      all.back() += c;
    }
  }
  return all;
}

template <class E>
std::vector<E> values(const std::string& flag, const std::string& text,
                      std::optional<E> (*parse)(const std::string&), const char* expected) {
  std::vector<E> all;
  for (const std::string& part : parts(text)) {
    const auto value = parse(part);
    if (!value) throw UsageError(flag + ": expected " + expected + ", found '" + part + "'");
    all.push_back(*value);
  }
  return all;
}

// "1x8,0.7x8": eight ranks of speed 1, then eight of 0.7.
std::vector<double> rank_speeds(const std::string& flag, const std::string& text) {
  constexpr double kMostRanks = 1 << 20;
  std::vector<double> all;
  for (const std::string& part : parts(text)) {
    const std::size_t cross = part.find('x');
    const double speed = number(flag, part.substr(0, cross), kLeastSpeed);
    double count = 1;
    if (cross != std::string::npos) count = number(flag, part.substr(cross + 1), 1);
    if (count != std::floor(count) || static_cast<double>(all.size()) + count > kMostRanks) {
      throw UsageError(flag + ": expected SPEED or SPEEDxCOUNT with a whole count of at most " +
                       "1048576 in all, found '" + part + "'");
    }
    all.insert(all.end(), static_cast<std::size_t>(count), speed);
  }
  return all;
}

void apply_own_flag(const TypedFlag& flag, PredictRequest& request) {
  const std::string& value = flag.value;
  if (flag.name == "--machine") request.machines = parts(value);
  if (flag.name == "--measured-single") {
    request.measured_single_ms = number(flag.name, value, kLeastMs);
  }
  if (flag.name == "--precision") {
    request.precisions =
        values(flag.name, value, simulator::parse_precision, "float32, float16 or bfloat16");
  }
  if (flag.name == "--hook") {
    request.hooks = values(flag.name, value, simulator::parse_bucket_hook,
                           "none, fp16_compress or bf16_compress");
  }
  if (flag.name == "--stragglers") request.straggler = number(flag.name, value, 1);
  if (flag.name == "--rank-speeds") request.rank_speeds = rank_speeds(flag.name, value);
  if (flag.name == "--jitter") request.jitter = number(flag.name, value, 0, kMostJitter);
  if (flag.name == "--exact-recordings") request.exact_recordings = value != "false";
  if (flag.name == "--draw-jitter") request.draw_jitter = value != "false";
}

// DataParallel on a node against DistributedDataParallel on everything, at batch 32 per GPU.
void apply_defaults(Settings& settings) {
  settings.scenario = "predict";
  if (settings.models.empty()) {
    throw UsageError("--model: expected a name of `bench list models`, or a TorchScript file");
  }
  if (settings.strategies.empty()) {
    settings.strategies = {Strategy::data_parallel, Strategy::distributed};
  }
  if (settings.batches.empty() && settings.batches_per_gpu.empty()) {
    settings.batches_per_gpu = {kDefaultBatchPerGpu};
  }
}

}  // namespace

const std::vector<Flag>& predict_flags() {
  static const std::vector<Flag> rows = [] {
    std::vector<Flag> all(std::begin(kOwnFlags), std::end(kOwnFlags));
    for (const Setting& row : setting_table()) {
      if (is_irrelevant(row)) continue;
      all.push_back({row.flag, row.placeholder, row.help, row.section, row.example});
    }
    return all;
  }();
  return rows;
}

PredictRequest parse_predict_request(const Typed& typed) {
  PredictRequest request;
  std::vector<TypedFlag> settings;
  for (const TypedFlag& flag : typed.flags) {
    if (find_setting_by_flag(flag.name) != nullptr) {
      settings.push_back(flag);
    } else {
      apply_own_flag(flag, request);
    }
  }
  apply_settings(settings, request.settings);
  apply_defaults(request.settings);
  return request;
}

}  // namespace bench::cli
