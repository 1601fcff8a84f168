#include "scenarios/pitfalls/argument_for.hpp"

namespace bench::pitfalls::facts {

Ref argument_for(const CallRef& site, diagnose::FunctionRef function, std::string_view parameter) {
  const auto& parameters = function.function->parameters;
  const std::size_t first = function.function->owner_class != diagnose::kNoNode ? 1 : 0;
  for (std::size_t i = first; i < parameters.size(); ++i)
    if (parameters[i].name == parameter) return site.argument(i - first, parameter);
  return {};
}

}  // namespace bench::pitfalls::facts
