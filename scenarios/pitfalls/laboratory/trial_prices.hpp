// What the prices and judges of several rules have in common: crashes with PyTorch's own words, and
// values that ought to be equal on all ranks.
#pragma once

#include "scenarios/pitfalls/laboratory/laboratory.hpp"
#include "scenarios/pitfalls/laboratory/run_evidence.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace bench::pitfalls {

// A mistake that ends in an exception whose text holds `words`, and costs every step after it.
Price price_of_crash(const RunEvidence& broken, const RunEvidence& cured, std::string_view words);

// "RuntimeError: element 0 of tensors does not require grad": the first sentence of an error.
std::string first_sentence(const std::string& error);

// The key as a number on every rank; empty unless every rank has it.
std::vector<double> rank_values(const RunEvidence& run, std::string_view key);
// "64, 128"
std::string rank_figures(const RunEvidence& run, std::string_view key, int decimals = 1);
// At least two ranks have the key, and their values are not the same up to rounding.
bool ranks_differ(const RunEvidence& run, std::string_view key);
// The largest of the ranks' values minus the smallest.
double rank_spread(const RunEvidence& run, std::string_view key);

}  // namespace bench::pitfalls
