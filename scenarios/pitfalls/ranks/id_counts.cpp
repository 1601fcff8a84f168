#include "scenarios/pitfalls/ranks/id_counts.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Field;
using diagnose::Kind;
using diagnose::Value;

namespace {

constexpr int kSteps = 6;  // ids -> range -> number -> len -> split -> option

std::optional<std::int64_t> count_of(const Program& program, Ref items, int depth);

// [0, 1], also as the default of an option.
std::optional<std::int64_t> listed(const Program& program, Ref items) {
  const Value known = program.evaluate(items);
  if (known.type != Value::Type::list) return std::nullopt;
  return static_cast<std::int64_t>(known.items.size());
}

// 3, or the length of something.
std::optional<std::int64_t> number(const Program& program, Ref value, int depth) {
  if (!value || depth > kSteps) return std::nullopt;
  if (const Value known = program.evaluate(value); known.is_integer()) return known.integer;
  const CallRef call = program.made_by(value);
  if (!call || call.receiver() || call.call->name != "len") return std::nullopt;
  return count_of(program, call.positional(0), depth + 1);
}

// "0,1,2".split(",")
std::optional<std::int64_t> parts_of(const Program& program, const CallRef& split) {
  const auto mark = program.string(split.positional(0));
  const Value text = program.evaluate(split.receiver());
  if (!mark || mark->size() != 1 || !text.is_string() || text.string.empty()) return std::nullopt;
  return std::count(text.string.begin(), text.string.end(), mark->front()) + 1;
}

std::optional<std::int64_t> count_of(const Program& program, Ref items, int depth) {
  if (!items || depth > kSteps) return std::nullopt;
  if (items.kind() == Kind::identifier || items.kind() == Kind::attribute) {
    std::optional<std::int64_t> found;
    for (const diagnose::Source& source : program.sources(items)) {
      if (source.how == diagnose::Source::How::argument) return listed(program, items);
      if (source.how != diagnose::Source::How::value || source.ref == items) return std::nullopt;
      const auto count = count_of(program, source.ref, depth + 1);
      if (!count || (found && *found != *count)) return std::nullopt;
      found = count;
    }
    return found;
  }
  if (items.kind() == Kind::comprehension) {
    // One loop and no condition: as many as it goes over.
    const std::string_view text = items.text();
    const std::size_t loop = text.find(" for ");
    if (loop == std::string_view::npos || text.find(" for ", loop + 1) != std::string_view::npos ||
        text.find(" if ") != std::string_view::npos)
      return std::nullopt;
    const auto& tree = items.module->tree();
    for (diagnose::NodeId at = items.node + 1; at < tree[items.node].last; ++at)
      if (tree[at].field == Field::right) return count_of(program, items.with(at), depth + 1);
    return std::nullopt;
  }
  const CallRef call = program.as_call(items);
  if (!call) return listed(program, items);
  const std::string_view name = call.call->name;
  if (name == "split" && call.receiver()) return parts_of(program, call);
  if (call.receiver()) return std::nullopt;
  if (name == "range" && !call.positional(1)) return number(program, call.positional(0), depth + 1);
  if (name == "list" || name == "sorted") return count_of(program, call.positional(0), depth + 1);
  if (name == "map") return count_of(program, call.positional(1), depth + 1);
  return std::nullopt;
}

}  // namespace

std::optional<std::int64_t> count_of_ids(const Program& program, Ref ids) {
  return ids ? count_of(program, ids, 0) : std::nullopt;
}

}  // namespace bench::pitfalls
