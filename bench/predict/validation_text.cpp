#include "bench/predict/validation_text.hpp"

#include "bench/core/strategy.hpp"
#include "report/text_table.hpp"
#include "simulator/collective_check.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <map>

namespace bench {
namespace {

using report::TextTable;
using simulator::PublishedStep;
using simulator::Replayed;
using simulator::ReplaySummary;

constexpr std::size_t kWorstRows = 10;

std::string percent(double share) { return fmt::format("{:.1f} %", share * 100); }
std::string signed_percent(double share) { return fmt::format("{:+.1f} %", share * 100); }

TextTable summary_table(const std::vector<Replayed>& rows) {
  TextTable table;
  table.columns = {
      {"published runs", false, 9}, {"rows", true, 9}, {"mean error", true, 9},
      {"worst", true, 9},           {"bias", true, 9}, {"ratio without anchor", true, 9}};
  for (const ReplaySummary& summary : simulator::summarize(rows)) {
    if (summary.rows == 0) continue;
    table.rows.push_back({summary.group, std::to_string(summary.rows), percent(summary.mean_error),
                          percent(summary.worst_error), signed_percent(summary.bias),
                          percent(summary.mean_unanchored_error)});
  }
  return table;
}

TextTable held_out_table(const std::vector<HeldOut>& all) {
  TextTable table;
  table.columns = {{"machine left out", false, 9},
                   {"constants without it", false, 9},
                   {"rows", true, 9},
                   {"mean error", true, 9},
                   {"worst", true, 9},
                   {"bias", true, 9}};
  for (const HeldOut& held : all) {
    const ReplaySummary& s = held.summary;
    table.rows.push_back({held.group, held.fitted, std::to_string(s.rows), percent(s.mean_error),
                          percent(s.worst_error), signed_percent(s.bias)});
  }
  return table;
}

std::string side_name(const simulator::RatioSide& side) {
  return fmt::format("{} on {} of {}", strategy_name(side.strategy), side.gpus, side.machine);
}

TextTable ratio_table(const std::vector<simulator::ReplayedRatio>& rows) {
  TextTable table;
  table.columns = {{"published runs", false, 9}, {"step of", false, 9},
                   {"over step of", false, 9},   {"model", false, 9},
                   {"batch/GPU", true, 9},       {"published", true, 9},
                   {"predicted", true, 9},       {"error", true, 9},
                   {"without anchor", true, 9},  {"tuned to it", false, 9}};
  for (const simulator::ReplayedRatio& row : rows) {
    const simulator::PublishedRatio& p = *row.published;
    table.rows.push_back({p.group, side_name(p.side), side_name(p.base), p.model,
                          std::to_string(p.batch_per_gpu), fmt::format("{:.3f}", p.ratio),
                          fmt::format("{:.3f}", row.predicted()),
                          signed_percent(row.relative_error()),
                          signed_percent(row.unanchored_error()), p.tuned.empty() ? "-" : p.tuned});
  }
  return table;
}

std::string model_name(const PublishedStep& p) {
  std::string name = p.model;
  if (p.tokens) name += fmt::format(", {} tokens", *p.tokens);
  if (p.precision != simulator::Precision::float32) {
    name += std::string(" ") + simulator::precision_name(p.precision);
  }
  return name;
}

TextTable row_table(const std::vector<const Replayed*>& rows, bool with_reason) {
  TextTable table;
  table.columns = {{"machine", false, 9}, {"model", false, 9},        {"strategy", false, 9},
                   {"GPUs", true, 9},     {"batch/GPU", true, 9},     {"bucket", true, 9},
                   {"single", true, 9},   {"published", true, 9},     {"predicted", true, 9},
                   {"error", true, 9},    {"without anchor", true, 9}};
  if (with_reason) table.columns.push_back({"why apart", false, 9});
  for (const Replayed* row : rows) {
    const PublishedStep& p = *row->published;
    table.rows.push_back(
        {p.machine, model_name(p), strategy_name(p.strategy), std::to_string(p.gpus),
         std::to_string(p.batch_per_gpu),
         p.bucket_mb ? fmt::format("{:.0f} MB", *p.bucket_mb) : "-",
         fmt::format("{:.1f} ms", p.single_ms), fmt::format("{:.1f} ms", p.step_ms),
         fmt::format("{:.1f} ms", row->predicted_ms), signed_percent(row->relative_error()),
         fmt::format("{:.1f} ms", row->unanchored_ms)});
    if (with_reason) table.rows.back().push_back(p.apart.empty() ? "-" : p.apart);
  }
  return table;
}

std::string class_name(const simulator::StepClass& kind) {
  const std::string name = kind.strategy == Strategy::single          ? "one GPU"
                           : kind.strategy == Strategy::data_parallel ? "DataParallel"
                                                                      : "DistributedDataParallel";
  return name + (kind.anchored ? ", single step measured" : ", data sheets only");
}

TextTable band_table(const std::vector<BandCheck>& bands) {
  TextTable table;
  table.columns = {{"step time of", false, 9},
                   {"rows", true, 9},
                   {"half within", true, 9},
                   {"nine in ten within", true, 9},
                   {"printed band", true, 9}};
  for (const BandCheck& band : bands) {
    table.rows.push_back({class_name(band.kind), std::to_string(band.rows), percent(band.median),
                          percent(band.p90), percent(band.used)});
  }
  return table;
}

TextTable collective_table() {
  TextTable table;
  table.columns = {{"all-reduce", false, 9}, {"published sweep", false, 9},
                   {"sizes", true, 9},       {"mean error", true, 9},
                   {"worst", true, 9},       {"1 to 64 MiB", true, 9}};
  for (const simulator::CollectiveCheck& check : simulator::check_collectives()) {
    table.rows.push_back({check.method, check.curve, std::to_string(check.points),
                          percent(check.mean_error), percent(check.worst_error),
                          percent(check.bucket_error)});
  }
  return table;
}

std::vector<const Replayed*> pointers(const std::vector<Replayed>& rows) {
  std::vector<const Replayed*> all;
  for (const Replayed& row : rows) all.push_back(&row);
  return all;
}

struct Parts {
  std::vector<const Replayed*> counted;
  std::vector<const Replayed*> apart;
};

Parts split(const Validation& validation) {
  Parts parts;
  for (const Replayed& row : validation.rows) {
    (row.published->apart.empty() ? parts.counted : parts.apart).push_back(&row);
  }
  return parts;
}

std::vector<const Replayed*> worst_of(std::vector<const Replayed*> rows) {
  std::stable_sort(rows.begin(), rows.end(), [](const Replayed* a, const Replayed* b) {
    return std::abs(a->relative_error()) > std::abs(b->relative_error());
  });
  rows.resize(std::min(rows.size(), kWorstRows));
  return rows;
}

std::string order_sentence(const OrderCheck& order) {
  return fmt::format(
      "Which of two published options is faster (per sample, gaps above 5 %): right in {} of {} "
      "pairs.",
      order.agreed, order.pairs);
}

std::string skipped_sentence(const Validation& validation) {
  if (validation.skipped.empty()) return "";
  return fmt::format(
      "{} rows were not replayed: their models are not built in; export them with "
      "scripts/export_torchvision.py DIR and pass --models DIR.\n",
      validation.skipped.size());
}

std::string indented(const TextTable& table) {
  std::string text;
  for (const std::string& line : table.lines(2)) text += line + "\n";
  return text;
}

using Json = nlohmann::ordered_json;

Json summary_json(const std::vector<Replayed>& rows) {
  Json json;
  for (const ReplaySummary& s : simulator::summarize(rows)) {
    json.push_back({{"group", s.group},
                    {"rows", s.rows},
                    {"mean_error", s.mean_error},
                    {"worst_error", s.worst_error},
                    {"bias", s.bias},
                    {"mean_unanchored_ratio_error", s.mean_unanchored_error}});
  }
  return json;
}

}  // namespace

std::string validation_text(const Validation& validation) {
  const Parts parts = split(validation);
  const OrderCheck order = check_order(validation.rows);
  std::string text =
      "SIMULATED steps against published ones; the single-device step is anchored.\n\n";
  text += indented(row_table(parts.counted, false));
  text += "\nBy source\n" + indented(summary_table(validation.rows));
  text += "\nWith constants that have not seen the machine\n" +
          indented(held_out_table(validation.held_out));
  if (!validation.unseen.empty()) {
    text += "\nRuns that no constant has seen\n" + indented(summary_table(validation.unseen)) +
            indented(row_table(pointers(validation.unseen), true));
  }
  if (!validation.ratios.empty()) {
    text += "\nRuns without a single-device step, one over another\n" +
            indented(ratio_table(validation.ratios));
  }
  text += "\nError bands\n" + indented(band_table(check_bands(validation)));
  text += "\nCollectives, with the figure in question left out\n" + indented(collective_table());
  if (!parts.apart.empty()) {
    text +=
        "\nApart: rows that contradict their neighbours\n" + indented(row_table(parts.apart, true));
  }
  text += "\n" + order_sentence(order) + "\n" + skipped_sentence(validation);
  return text;
}

std::string validation_markdown(const Validation& validation) {
  const Parts parts = split(validation);
  const OrderCheck order = check_order(validation.rows);
  std::string text = summary_table(validation.rows).markdown();
  text += "\n### With constants that have not seen the machine\n\n" +
          held_out_table(validation.held_out).markdown();
  if (!validation.unseen.empty()) {
    text += "\n### Runs that no constant has seen\n\n" +
            summary_table(validation.unseen).markdown() + "\n" +
            row_table(pointers(validation.unseen), true).markdown();
  }
  if (!validation.ratios.empty()) {
    text += "\n### Runs without a single-device step, one over another\n\n" +
            ratio_table(validation.ratios).markdown();
  }
  text += "\n### Error bands\n\n" + band_table(check_bands(validation)).markdown();
  text +=
      "\n### Collectives, with the figure in question left out\n\n" + collective_table().markdown();
  text += "\n" + order_sentence(order) + "\n";
  if (!order.disagreements.empty()) text += "Wrong:\n\n";
  for (const std::string& pair : order.disagreements) text += "- " + pair + "\n";
  text += "\n### The worst rows\n\n" + row_table(worst_of(parts.counted), false).markdown();
  text += "\n### Rows apart, which contradict their neighbours\n\n" +
          row_table(parts.apart, true).markdown();
  text += "\n### Every row\n\n" + row_table(parts.counted, false).markdown();
  return text + skipped_sentence(validation);
}

std::string validation_json(const Validation& validation) {
  Json json{{"schema", 1}, {"simulated", true}};
  json["summary"] = summary_json(validation.rows);
  if (!validation.unseen.empty()) json["unseen"] = summary_json(validation.unseen);
  for (const simulator::ReplayedRatio& row : validation.ratios) {
    const simulator::PublishedRatio& p = *row.published;
    json["ratios"].push_back({{"group", p.group},
                              {"question", p.question},
                              {"model", p.model},
                              {"side", side_name(p.side)},
                              {"base", side_name(p.base)},
                              {"published", p.ratio},
                              {"predicted", row.predicted()},
                              {"error", row.relative_error()},
                              {"unanchored", row.unanchored},
                              {"unanchored_error", row.unanchored_error()},
                              {"tuned", p.tuned},
                              {"source", p.source}});
  }
  for (const BandCheck& band : check_bands(validation)) {
    json["bands"].push_back({{"class", class_name(band.kind)},
                             {"rows", band.rows},
                             {"median", band.median},
                             {"p90", band.p90},
                             {"used", band.used}});
  }
  for (const simulator::CollectiveCheck& check : simulator::check_collectives()) {
    json["collectives"].push_back({{"method", check.method},
                                   {"curve", check.curve},
                                   {"mean_error", check.mean_error},
                                   {"worst_error", check.worst_error}});
  }
  for (const HeldOut& held : validation.held_out) {
    json["held_out"].push_back({{"group", held.group},
                                {"constants", held.fitted},
                                {"rows", held.summary.rows},
                                {"mean_error", held.summary.mean_error},
                                {"worst_error", held.summary.worst_error}});
  }
  const OrderCheck order = check_order(validation.rows);
  json["order"] = {{"pairs", order.pairs}, {"agreed", order.agreed}};
  json["rows"] = Json::array();
  for (const Replayed& row : validation.rows) {
    const PublishedStep& p = *row.published;
    json["rows"].push_back({{"group", p.group},
                            {"machine", p.machine},
                            {"model", p.model},
                            {"strategy", strategy_name(p.strategy)},
                            {"gpus", p.gpus},
                            {"batch_per_gpu", p.batch_per_gpu},
                            {"single_ms", p.single_ms},
                            {"published_ms", p.step_ms},
                            {"predicted_ms", row.predicted_ms},
                            {"error", row.relative_error()},
                            {"unanchored_ms", row.unanchored_ms},
                            {"unanchored_single_ms", row.unanchored_single_ms},
                            {"apart", p.apart},
                            {"source", p.source}});
  }
  json["not_replayed"] = validation.skipped.size();
  return json.dump(2) + "\n";
}

}  // namespace bench
