#include "diagnose/syntax/parse_tables.hpp"

#include <algorithm>

namespace bench::diagnose {

ParseTables::ParseTables(const TSLanguage& language)
    : language_(language), rows_(language.state_count), transparent_(language.symbol_count) {
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
