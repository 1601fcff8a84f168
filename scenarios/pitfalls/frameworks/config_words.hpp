// Which config files are worth reading: many hold figures or the words of a tokenizer, and a reader
// of YAML takes longer for them than all rules do.
#pragma once

#include <string_view>

namespace bench::pitfalls {

// The text has a word without which no rule says anything of a config file. A rule that asks for
// another key names it there; the cases of its page fail otherwise.
bool may_configure_ranks(std::string_view text);

}  // namespace bench::pitfalls
