// Validation that ships: every published training step that the simulator can express, replayed
// from recordings and compared. The single-device step is anchored to the published one.
#pragma once

#include "bench/predict/recording_store.hpp"
#include "simulator/error_band.hpp"
#include "simulator/ratio_replay.hpp"
#include "simulator/replay.hpp"

#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace bench {

// A published row with what has to be recorded for it.
struct ValidationWork {
  const simulator::PublishedStep* row = nullptr;
  Case all;
  Case single;
  simulator::Anchor anchor{};  // once it was replayed
};

// What the predictions would be worth if the constants had not seen the machine: fitted to the
// other machines of the same kind, they predict the one left out.
struct HeldOut {
  std::string group;   // the machine left out
  std::string fitted;  // what the constants became without it
  simulator::ReplaySummary summary;
};

struct Validation {
  std::vector<ValidationWork> work;
  std::vector<simulator::Replayed> rows;
  // Runs that were found when the constants stood; none was changed for them.
  std::vector<simulator::Replayed> unseen;
  // Rows that were not replayed, and why: the model is neither built in nor exported.
  std::vector<std::pair<const simulator::PublishedStep*, std::string>> skipped;
  std::vector<HeldOut> held_out;
  // Runs that were published without a single-device step, compared with each other.
  std::vector<simulator::ReplayedRatio> ratios;
};

// What nine published runs in ten stay within, by the class of question; `used` is what predictions
// of the class print.
struct BandCheck {
  simulator::StepClass kind{};
  int rows = 0;
  double median = 0;
  double p90 = 0;
  double used = 0;
};
std::vector<BandCheck> check_bands(const Validation& validation);

// Which option the published figures call faster by more than 5 %, and whether the prediction
// agrees: pairs of rows that differ in one thing only.
struct OrderCheck {
  int pairs = 0;
  int agreed = 0;
  std::vector<std::string> disagreements;
};

// `models` holds TorchScript files named after the published models
// (scripts/export_torchvision.py); may be empty. `wanted` chooses rows by group and source; none:
// all.
using WantedRows = std::function<bool(const std::string& group, const std::string& source)>;
Validation validate(RecordingStore& store, const std::filesystem::path& models,
                    const WantedRows& wanted = {});

std::vector<simulator::ReplayedRatio> replay_ratios(RecordingStore& store,
                                                    const WantedRows& wanted);

std::vector<HeldOut> leave_one_machine_out(RecordingStore& store,
                                           const std::vector<ValidationWork>& work);

OrderCheck check_order(const std::vector<simulator::Replayed>& rows);

}  // namespace bench
