// Switches of a function: parameters that a condition around a node asks about. A call that gives
// another value, or leaves a default that is another one, does not come by the node.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

#include <string_view>
#include <vector>

namespace bench::pitfalls::facts {

// `if create:`, `if path is not None:`, `if kind == "cifar10" and download:` around a node. The
// parameter has the name `inside` in the condition and `outside` in the function that calls.
struct Switch {
  Ref condition;
  bool holds = true;
  std::string_view inside;
  std::string_view outside;
};
using Switches = std::vector<Switch>;

// A parameter that the function gives no other value before it comes to the name:
// `if model is None: model = build()`.
bool is_kept_parameter(diagnose::FunctionRef function, Ref name);

// What the call gives for the parameter, or the default where it gives nothing.
Ref given_for(diagnose::FunctionRef function, std::string_view name, const CallRef& site);

// With the value a condition on the name does not come out as it must to lead to the node.
bool leads_past(const Program& program, const diagnose::Guard& guard, std::string_view name,
                const diagnose::Value& value);

// A guard that asks about an attribute which every object of the class is made without:
// `if self.create:` after `self.create = create` in the constructor.
bool is_switched_off_in_object(const Program& program, const diagnose::Guard& guard);

// The conditions around the node, within the function, on parameters that it does not set before,
// and on attributes that keep them: if self.cache: below self.cache = cache.
Switches switches_around(const Program& program, diagnose::FunctionRef function, Ref node);

// Whether the call leaves the switches so that the node is not reached. A parameter of the caller
// that is handed on is a switch of the caller, put into `outer`.
bool is_switched_off_by(const Program& program, diagnose::FunctionRef function,
                        const Switches& switches, const CallRef& site, Switches& outer);

// The same for functions in a table: builders[name](checkpoint=None) calls each function that the
// dictionary `builders` holds. True where the program calls what the table at `place` holds, and
// every such call leaves the switches so.
bool is_switched_off_in_table(const Program& program, diagnose::FunctionRef function,
                              const Switches& switches, Ref place);

}  // namespace bench::pitfalls::facts
