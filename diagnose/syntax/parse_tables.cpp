#include "diagnose/syntax/parse_tables.hpp"

#include <tree_sitter/api.h>

#include <algorithm>
#include <string_view>

namespace bench::diagnose {
namespace {

std::vector<char> scanner_states_in_strings(const TSLanguage& language) {
  std::uint16_t most = 0;
  for (std::uint32_t state = 0; state < language.state_count; ++state)
    most = std::max(most, language.lex_modes[state].external_lex_state);
  const auto is_within_string = [&](std::uint32_t token) {
    const std::string_view name =
        ts_language_symbol_name(&language, language.external_scanner.symbol_map[token]);
    return name == "string_content" || name == "escape_interpolation" || name == "string_end";
  };
  std::vector<char> out(std::size_t{most} + 1);
  for (std::size_t state = 0; state < out.size(); ++state)
    for (std::uint32_t token = 0; token < language.external_token_count; ++token)
      if (language.external_scanner.states[state * language.external_token_count + token] &&
          is_within_string(token))
        out[state] = true;
  return out;
}

}  // namespace

ParseTables::ParseTables(const TSLanguage& language)
    : language_(language),
      rows_(language.state_count),
      transparent_(language.symbol_count),
      scans_strings_(scanner_states_in_strings(language)) {
  for (TSStateId state = 0; state < language.large_state_count; ++state)
    rows_[state] = language.parse_table + std::size_t{state} * language.symbol_count;
  for (TSSymbol symbol = 0; symbol < language.symbol_count; ++symbol)
    transparent_[symbol] = !language.symbol_metadata[symbol].visible;
  // Symbol, count, the names it goes by; 0 ends the list.
  for (const std::uint16_t* at = language.alias_map; *at != 0; at += 2 + at[1])
    transparent_[*at] = false;
  std::uint16_t most = 0;
  for (std::uint32_t state = 0; state < language.state_count; ++state)
    if (const std::uint16_t lex_state = language.lex_modes[state].lex_state;
        lex_state != static_cast<std::uint16_t>(-1))
      most = std::max(most, lex_state);
  reads_names_.resize(2 * (std::size_t{most} + 1));
  begins_no_keyword_.resize(std::size_t{256} * 256);
}

void ParseTables::spread(TSStateId state) {
  std::vector<std::uint16_t> row(language_.symbol_count);
  const std::uint16_t* at = language_.small_parse_table +
                            language_.small_parse_table_map[state - language_.large_state_count];
  for (std::uint16_t groups = *at++; groups > 0; --groups) {
    const std::uint16_t value = *at++;
    for (std::uint16_t count = *at++; count > 0; --count) row[*at++] = value;
  }
  spread_.push_back(std::move(row));
  rows_[state] = spread_.back().data();
}

}  // namespace bench::diagnose
