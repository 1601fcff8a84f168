#include "scenarios/pitfalls/files/writer_of_logs.hpp"

#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"

#include <algorithm>

namespace bench::pitfalls {

namespace {

// writer = SummaryWriter(), which some caller gives without having asked for the rank.
bool is_made_on_all_ranks(const Program& program, Ref writer) {
  const auto& sources = program.sources(writer);
  return std::any_of(sources.begin(), sources.end(), [&](const diagnose::Source& source) {
    const auto made = program.as_call(source.ref);
    return source.how == diagnose::Source::How::value && made &&
           (made.call->name.ends_with("Writer") || program.class_of_call(made)) &&
           program.guarded_by_rank(source.ref) == diagnose::RankTest::none;
  });
}

}  // namespace

bool is_left_to_the_writer(const Program& program, Ref node) {
  return program.under(node, [&](Ref condition, bool holds) {
    constexpr std::string_view kPresent = " is not None";
    const std::string_view text = condition.text();
    if (!holds || condition.kind() != diagnose::Kind::comparison || !text.ends_with(kPresent))
      return false;
    const Ref name = condition.with(condition.module->tree().child_at(condition.node, 0));
    return says_any(name.text(), {"writer", "tensorboard"}) && facts::is_parameter(program, name) &&
           !is_made_on_all_ranks(program, name);
  });
}

}  // namespace bench::pitfalls
