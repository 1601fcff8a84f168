#include "scenarios/pitfalls/frameworks/config_words.hpp"

#include <cctype>

namespace bench::pitfalls {
namespace {

// In any case of letters: is_trainer_key() does not mind it.
bool names_trainer(std::string_view text) {
  constexpr std::string_view kWord = "trainer";
  for (std::size_t at = text.find_first_of("tT"); at != std::string_view::npos;
       at = text.find_first_of("tT", at + 1)) {
    const std::string_view rest = text.substr(at, kWord.size());
    std::size_t same = 0;
    while (same < rest.size() &&
           std::tolower(static_cast<unsigned char>(rest[same])) == kWord[same])
      ++same;
    if (same == kWord.size()) return true;
  }
  return false;
}

}  // namespace

bool may_configure_ranks(std::string_view text) {
  return text.find("num_processes") != std::string_view::npos || names_trainer(text);
}

}  // namespace bench::pitfalls
