// Help for a mistyped name: the known names closest to it by edit distance, and the one sentence in
// which every "unknown ..." error of the product is worded.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace bench {

// Least number of inserted, deleted, replaced or swapped neighbouring characters (the restricted
// Damerau-Levenshtein distance); case does not count.
std::size_t edit_distance(std::string_view a, std::string_view b);

// At most `limit` of `known`, closest first, ties in the order of `known`. Names too far away to be
// a typing error are left out, so the answer may be empty.
std::vector<std::string> nearest_names(std::string_view name, std::span<const std::string> known,
                                       std::size_t limit = 3);

// "unknown model 'resnet51'; did you mean resnet50 or resnet18? known: mlp, resnet18, resnet50".
// `what` is the noun ("strategy", "key in [sweep]"). `list_command` is what shows all of them: with
// it a long list of known names is left out, and the reader is sent there.
std::string unknown_name_message(std::string_view what, std::string_view name,
                                 std::span<const std::string> known,
                                 std::string_view list_command = {});

}  // namespace bench
