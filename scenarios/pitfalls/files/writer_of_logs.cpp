#include "scenarios/pitfalls/files/writer_of_logs.hpp"

#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"

namespace bench::pitfalls {

bool is_left_to_the_writer(const Program& program, Ref node) {
  return program.under(node, [&](Ref condition, bool holds) {
    constexpr std::string_view kPresent = " is not None";
    const std::string_view text = condition.text();
    if (!holds || condition.kind() != diagnose::Kind::comparison || !text.ends_with(kPresent))
      return false;
    const Ref name = condition.with(condition.module->tree().child_at(condition.node, 0));
    return says_any(name.text(), {"writer", "tensorboard"}) && facts::is_parameter(program, name);
  });
}

}  // namespace bench::pitfalls
