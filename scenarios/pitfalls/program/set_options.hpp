// Options of the command line that the program fills in other ways than by its parser, so that
// neither a command nor a default says what they are.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

#include <string_view>

namespace bench::pitfalls::facts {

// Something sets options by their names, this one perhaps among them: setattr(args, key, value),
// vars(args).update(config), parser.set_defaults(**config). Reading them all
// (json.dumps(vars(args))) sets none.
bool may_be_set_in_bulk(const Program& program, std::string_view option);

// The same, or some object has an attribute of the name: args.data = "c".
bool may_be_set_otherwise(const Program& program, std::string_view option);

}  // namespace bench::pitfalls::facts
