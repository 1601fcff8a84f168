// The batch size under DDP: what it was is now that of all ranks.
#include "diagnose/to_ddp/batch_sizes.hpp"
#include "diagnose/to_ddp/remaining/topics.hpp"
#include "scenarios/pitfalls/data/loaders.hpp"
#include "scenarios/pitfalls/program/facts.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <map>

namespace bench::diagnose {
namespace {

using pitfalls::facts::contains;

constexpr std::int64_t kUsualRanks = 8;  // and 4 and 2

bool is_shared(const Left& left, const BatchSize& batch) {
  return bool(pitfalls::sampler_of(left.program, batch.loader));
}

// One by default or by what is written.
bool is_left_whole(const Program& program, const BatchSize& batch) {
  if (batch.is_divided) return false;
  if (!batch.total) return !batch.loader.has_splat() && !batch.loader.argument(4, "batch_sampler");
  const Value size = program.evaluate(batch.total);
  return size.is_integer() && size.integer < 2;
}

// batch_size=None: the data set makes the batches.
bool makes_no_batches(const BatchSize& batch) {
  return batch.total && batch.total.kind() == Kind::none_literal;
}

// len(train_set): the rank's share is one batch as it is.
bool takes_all(const Program& program, const BatchSize& batch) {
  const CallRef count = batch.total ? program.as_call(batch.total) : CallRef{};
  return count && count.call->name == "len";
}

// What a call gives, or stands among options behind **.
bool is_out_of_reach(const BatchSize& batch) {
  // a if dist.is_initialized() else a * num_gpus
  if (batch.is_divided || (batch.total && batch.total.kind() == Kind::conditional)) return false;
  if (!batch.total) return batch.loader.has_splat() && !batch.loader.argument(4, "batch_sampler");
  return !pitfalls::facts::calls_in(batch.total).empty() ||
         batch.total.module != batch.loader.module ||
         !batch.loader.module->tree().contains(batch.loader.call->node, batch.total.node);
}

std::string name_of_option(const Program& program, const CallRef& option) {
  for (std::size_t i = 0; const Ref word = option ? option.positional(i) : Ref{}; ++i)
    if (auto name = program.string(word); name && name->starts_with("--")) return *name;
  return {};
}

// if args.batch_size is None: args.batch_size = 4 * len(gpus), which a default keeps from running.
bool is_for_none(const Program& program, Ref value) {
  const auto guards = program.guards(value);
  return std::any_of(guards.begin(), guards.end(), [](const Guard& guard) {
    return guard.holds && guard.condition.text().ends_with("is None");
  });
}

// The option that alone sets the size.
CallRef only_option(const Program& program, Ref size) {
  std::vector<CallRef> options;
  for (const Source& source : program.sources(size)) {
    if (source.how == Source::How::argument)
      options.push_back(program.as_call(source.ref));
    else if (!is_for_none(program, source.ref))
      return {};
  }
  if (options.empty() && size.kind() == Kind::attribute)
    options = program.options_named(size.child(Field::attribute).text());
  return options.size() == 1 ? options.front() : CallRef{};
}

// "--batch_size" for what an option sets.
std::string option_behind(const Program& program, Ref size) {
  for (const Source& source : program.sources(size))
    if (source.how == Source::How::argument)
      if (std::string name = name_of_option(program, program.as_call(source.ref)); !name.empty())
        return name;
  return name_of_option(program, only_option(program, size));
}

// A size that a run takes where nobody says another, and who says so.
struct KnownSize {
  std::int64_t size = 0;  // 0 where it is not known
  std::string said;       // "by default", "in conf/train.yaml"; empty where it is written
};

// The default of the only option behind the size.
KnownSize default_of(const Program& program, Ref total) {
  const CallRef option = only_option(program, total);
  const Ref given = option ? option.keyword("default") : Ref{};
  const Value size = given ? program.evaluate(given) : Value{};
  if (!size.is_integer()) return {};
  return {size.integer, "as the script has it by default,"};
}

// train.batch_size for config["train"]["batch_size"] and config.train.batch_size.
std::string keys_of(const Program& program, Ref setting) {
  const Ref above = setting.child(setting.kind() == Kind::subscript ? Field::value : Field::object);
  std::string own;
  if (setting.kind() == Kind::subscript)
    own = program.string(setting.child(Field::subscript)).value_or("");
  else if (setting.kind() == Kind::attribute)
    own = setting.child(Field::attribute).text();
  if (own.empty()) return {};
  const std::string over = keys_of(program, above);
  return over.empty() ? own : over + "." + own;
}

// What the config files of the project say, where they agree.
KnownSize shipped_size(const Program& program, Ref total) {
  const std::string keys = keys_of(program, total);
  KnownSize out;
  if (keys.empty()) return out;
  for (const ShippedValue& each : program.shipped(keys.substr(keys.rfind('.') + 1))) {
    if (each.place == ShippedValue::Place::command || !("." + each.path).ends_with("." + keys))
      continue;
    if (!each.value.is_integer() || (out.size != 0 && out.size != each.value.integer)) return {};
    if (out.size == 0) out = {each.value.integer, "as " + each.file + " has it,"};
  }
  return out;
}

KnownSize known_size(const Program& program, Ref total) {
  const Value size = program.evaluate(total);
  if (size.is_integer())
    return {size.integer, size.is_default ? "as the script has it by default," : ""};
  const KnownSize option = default_of(program, total);
  if (option.size != 0) return option;
  const auto& sources = program.sources(total);
  return shipped_size(program, sources.size() == 1 ? sources.front().ref : total);
}

// A step has put an assertion, or its like, above the loader.
bool is_checked(const BatchSize& batch) {
  return contains(batch.loader.module->tree().source(),
                  "the batch does not divide by the number of ranks");
}

// Of a size that does not divide.
std::string what_comes_of_rest(const BatchSize& batch) {
  if (batch.total.kind() == Kind::integer)
    return "the rest is left out of each step, and with more ranks than samples the loader raises";
  return is_checked(batch) ? "where it does not, the assertion above the loader ends the run"
                           : "where it does not, the division raises or loses the rest";
}

// Three processes, and a size that a config file out of sight has: most do not divide.
std::string rest_of_unknown(const Left& left, const BatchSize& batch, const std::string& give) {
  if (left.ranks < 3 || std::has_single_bit(static_cast<std::uint64_t>(left.ranks)) ||
      !is_checked(batch))
    return {};
  const std::string count = std::to_string(left.ranks);
  return "whether this batch size divides by the " + count +
         " processes of the launch line is not in sight: " + what_comes_of_rest(batch) + ". " +
         give + " a multiple of " + count + ", or start another number.";
}

// Sizes that the number of processes does not divide: that of the launch line, or the usual ones.
std::string rest_of(const Left& left, const BatchSize& batch) {
  if (!batch.is_divided) return {};
  const KnownSize known = known_size(left.program, batch.total);
  const std::string option = option_behind(left.program, batch.total);
  const std::string give = option.empty() ? "Make it" : "Give " + option;
  if (known.size == 0) return rest_of_unknown(left, batch, give);
  if (known.size < 2 || known.size % (left.ranks > 1 ? left.ranks : kUsualRanks) == 0) return {};
  const std::string begin =
      "a batch of " + std::to_string(known.size) + (known.said.empty() ? "" : ", " + known.said);
  if (left.ranks > 1) {
    const std::string count = std::to_string(left.ranks);
    return begin + " does not divide by the " + count +
           " processes of the launch line: " + what_comes_of_rest(batch) + ". " + give +
           " a multiple of " + count + ", or start another number.";
  }
  std::int64_t first = 2;
  while (known.size % first == 0) first *= 2;
  return begin + " does not divide by every number of GPUs, and not by " + std::to_string(first) +
         ": " + what_comes_of_rest(batch) + ". " + give + " a multiple of the number of GPUs.";
}

}  // namespace

void tell_whole_batches(Left& left) {
  std::vector<Ref> ones;
  std::vector<Ref> out_of_reach;
  std::vector<Ref> made_by_data;
  for (const BatchSize& batch : batch_sizes(left)) {
    if (!is_shared(left, batch) || takes_all(left.program, batch)) continue;
    if (makes_no_batches(batch)) {
      made_by_data.push_back(batch.loader.ref());
      continue;
    }
    if (!is_left_whole(left.program, batch)) {
      if (is_out_of_reach(batch)) out_of_reach.push_back(batch.loader.ref());
      continue;
    }
    const std::string option = batch.total ? option_behind(left.program, batch.total) : "";
    if (option.empty())
      ones.push_back(batch.loader.ref());
    else
      left.tell(Harm::figures, {batch.loader.ref()},
                "no step has divided the batch size of this loader, which is one by default: every "
                "rank takes what " +
                    option +
                    " says, N times the samples of a step, and an epoch has an N-th of the steps. "
                    "Give " +
                    option +
                    " what one rank is to take, and set the learning rate for that, and its "
                    "schedule where it counts epochs.");
  }
  left.tell(Harm::figures, out_of_reach,
            "no step has divided the batch size of this loader: unless it is a rank's share "
            "already, a step takes N times the samples. Divide it by dist.get_world_size().");
  left.tell(Harm::figures, made_by_data,
            "this loader makes no batches: what the data set gives is one, and a step takes one on "
            "each rank where it took one in all. Divide the size that the data set goes by, or set "
            "the learning rate and its schedule for that.");
  left.tell(Harm::figures, ones,
            "the batch size of this loader is one, which cannot be divided: a step takes a sample "
            "on each rank where it took one in all, and an epoch has an N-th of the steps. Set the "
            "learning rate for that, and its schedule where it counts epochs; where a sample is a "
            "batch that the data set makes, divide that one.");
}

void tell_undividable_batches(Left& left) {
  std::map<std::string, std::vector<Ref>> places;
  for (const BatchSize& batch : batch_sizes(left))
    if (const std::string text = rest_of(left, batch); !text.empty())
      places[text].push_back(batch.total);
  for (const auto& [text, where] : places) left.tell(Harm::may_stop, where, text);
}

void tell_other_uses_of_batch(Left& left) {
  std::vector<Ref> known;
  for (const BatchSize& batch : batch_sizes(left)) {
    if (!batch.total) continue;
    const std::string name = "`" + std::string(batch.total.text()) + "`";
    const std::string loader = place_of(batch.loader.ref());
    const auto tell = [&](std::vector<Ref> places, const std::string& text) {
      std::erase_if(places, [&](const Ref& each) {
        return std::find(known.begin(), known.end(), each) != known.end();
      });
      known.insert(known.end(), places.begin(), places.end());
      left.tell(Harm::may_stop, places, text);
    };
    if (!batch.is_divided && is_shared(left, batch)) {
      tell(products_with_gpus(left, batch),
           "the loader of " + loader + " gives a rank " + name +
               ", and this is the size for all GPUs. Leave the number of GPUs out here, too.");
      continue;
    }
    const std::string when = (batch.is_divided ? "" : "once ") + ("the loader of " + loader) +
                             " gives a rank its share of " + name;
    tell(other_uses(left, batch),
         when +
             ": this still takes the whole for the size of a batch. Use the size of the tensor "
             "at hand (x.size(0)), or divide here, too.");
    tell(parts_of_batch(left, batch),
         when + ": this is a part of the whole. Divide it by the number of ranks, too.");
  }
}

}  // namespace bench::diagnose
