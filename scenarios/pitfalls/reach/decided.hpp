// What a condition says where some of the values in it are known.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

#include <functional>
#include <optional>
#include <string_view>

namespace bench::pitfalls::facts {

// The value of a part of the condition (a name, an attribute, an item of a dictionary), where it is
// known.
using ValueOf = std::function<std::optional<diagnose::Value>(Ref part)>;

// Empty where the known values do not decide it. They are compared with what is written out only.
std::optional<bool> decided(const Program& program, Ref condition, const ValueOf& value_of);

// The same as a value.
std::optional<diagnose::Value> decided_value(const Program& program, Ref condition,
                                             const ValueOf& value_of);

// The same where one name in it, or self.name, has the value.
std::optional<bool> decided(const Program& program, Ref condition, std::string_view name,
                            const diagnose::Value& value);

// As Python compares them: 0 == 0.0. Empty for values that are compared by more than their text.
std::optional<bool> same_value(const diagnose::Value& a, const diagnose::Value& b);

}  // namespace bench::pitfalls::facts
