// The batch size under DDP: what it was is now that of all ranks.
#include "diagnose/to_ddp/batch_sizes.hpp"
#include "diagnose/to_ddp/remaining/topics.hpp"
#include "scenarios/pitfalls/data/loaders.hpp"
#include "scenarios/pitfalls/program/facts.hpp"

#include <algorithm>
#include <map>

namespace bench::diagnose {
namespace {

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

// "--batch_size" for what an option sets.
std::string option_behind(const Program& program, Ref size) {
  for (const Source& source : program.sources(size)) {
    if (source.how != Source::How::argument) continue;
    const CallRef option = program.as_call(source.ref);
    for (std::size_t i = 0; const Ref word = option ? option.positional(i) : Ref{}; ++i)
      if (auto name = program.string(word); name && name->starts_with("--")) return *name;
  }
  return {};
}

// Sizes that the usual numbers of GPUs do not divide.
std::string rest_of(const Program& program, const BatchSize& batch) {
  const Value size = batch.is_divided ? program.evaluate(batch.total) : Value{};
  if (!size.is_integer() || size.integer < 1) return {};
  const bool is_literal = batch.total.kind() == Kind::integer;
  if (size.integer % 4 == 0 && size.integer >= 8) return {};
  const std::string option = option_behind(program, batch.total);
  return "a batch of " + std::to_string(size.integer) +
         (size.is_default ? ", as the script has it by default," : "") +
         " does not divide by every number of GPUs: " +
         (is_literal ? "the rest is left out of each step, and with more ranks than samples the "
                       "loader raises. "
                     : "where it does not, the division raises or loses the rest. ") +
         (option.empty() ? "Make it a multiple of the number of GPUs."
                         : "Give " + option + " a multiple of the number of GPUs.");
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
                    " says, N times the samples of a step and an N-th of the steps. Give " +
                    option +
                    " what one rank is to take, and set the learning rate and its schedule for "
                    "that.");
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
            "learning rate and its schedule for that; where a sample is a batch that the data set "
            "makes, divide that one.");
}

void tell_undividable_batches(Left& left) {
  std::map<std::string, std::vector<Ref>> places;
  for (const BatchSize& batch : batch_sizes(left))
    if (const std::string text = rest_of(left.program, batch); !text.empty())
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
