#include "diagnose/to_ddp/remaining.hpp"

#include "diagnose/to_ddp/remaining/before_group.hpp"
#include "diagnose/to_ddp/remaining/topics.hpp"
#include "diagnose/to_ddp/sync_batch_norm.hpp"
#include "diagnose/to_ddp/trains.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/reach/certainty.hpp"
#include "scenarios/pitfalls/reach/switches.hpp"

#include <algorithm>
#include <tuple>

namespace bench::diagnose {
namespace {

namespace facts = pitfalls::facts;

using Topic = void (*)(Left&);

constexpr Topic kTopics[] = {
    tell_unshared_data,
    tell_passes_over_shares,
    tell_recut_batches,
    tell_batch_of_all,
    tell_whole_batches,
    tell_undividable_batches,
    tell_other_uses_of_batch,
    tell_missing_epochs,
    tell_counts_of_samples,
    tell_trackers,
    tell_written_files,
    tell_downloads,
    tell_saves,
    tell_saves_out_of_sight,
    tell_pickled_wrappers,
    tell_reads_of_saved,
    tell_changed_keys,
    tell_keys_of_others,
    tell_old_tests_of_gpus,
    tell_names_by_clock,
    tell_names_by_draw,
    tell_names_by_number,
    tell_removals,
    tell_copies,
    tell_commands,
    tell_refusals_of_existing,
    tell_unused_parameters,
    tell_weights_of_each_rank,
    tell_bare_models,
    tell_parameters_of_first_batch,
    tell_attributes_of_handed_models,
    tell_optional_wrapper,
    tell_bare_branches,
    tell_type_tests,
    tell_needs_of_data_parallel,
    tell_repeated_wrappers,
    tell_passes_beside_forward,
    tell_passes_around_wrapper,
    tell_lists_of_gpus,
    tell_moves_to_cpu,
    tell_repeated_forwards,
    tell_unseeded_splits,
    tell_noise_of_one_seed,
    tell_orders_of_ranks,
    tell_fixed_devices,
    tell_devices_out_of_sight,
    tell_early_gpu_uses,
    tell_visible_devices,
    tell_losses_of_batch,
    tell_summed_losses,
    tell_means_divided_again,
    tell_early_stops,
    tell_plateau_steps,
    tell_swallowed_steps,
    tell_hidden_failures,
    tell_questions,
    tell_evaluation,
};

struct Entry {
  Harm harm = Harm::figures;
  std::vector<RemainingPlace> places;  // at least one
  std::string text;
};

// The script's lines first.
auto order_of(const std::string& script, const RemainingPlace& place) {
  return std::make_tuple(place.file != script, place.file, place.line);
}

Entry entry_of(const Told& told) {
  Entry out{told.harm, {}, told.text};
  for (const Ref& place : told.places)
    out.places.push_back({place.module->path(), place.module->tree().line_of(place.node)});
  return out;
}

// One entry for all that says the same.
void add(std::vector<Entry>& entries, Entry made) {
  const auto same = std::find_if(entries.begin(), entries.end(), [&](const Entry& each) {
    return each.harm == made.harm && each.text == made.text;
  });
  if (same == entries.end())
    entries.push_back(std::move(made));
  else
    same->places.insert(same->places.end(), made.places.begin(), made.places.end());
}

std::vector<Entry> entries_of(const Left& left) {
  std::vector<Entry> out;
  for (const Finding* each : findings_left(left))
    add(out, {harm_of(*each),
              {{each->file, each->line}},
              each->rule + " " + each->message + ". " + each->help});
  for (const Told& told : left.told) add(out, entry_of(told));
  return out;
}

}  // namespace

void Left::tell(Harm harm, std::vector<Ref> places, std::string text) {
  std::erase_if(places, [&](Ref place) { return is_of_old_sync(program, *place.module); });
  if (places.empty()) return;
  for (Told& each : told_by_group(program, {harm, std::move(places), std::move(text)}))
    told.push_back(std::move(each));
}

bool Left::is_found(Ref place, std::string_view rule) const {
  const auto& tree = place.module->tree();
  const std::uint32_t first = tree.line_of(place.node);
  const std::uint32_t last = tree.line_at(tree[place.node].end);
  return std::any_of(found.begin(), found.end(), [&](const Finding& each) {
    return each.rule == rule && each.file == place.module->path() && each.line >= first &&
           each.line <= last;
  });
}

namespace {

// if is_training: of a parameter for which every call of the function gives False.
bool is_switched_off_by_callers(const Program& program, Ref place) {
  const FunctionRef function = program.enclosing_function(place);
  if (!function || !program.handed_on(function).empty()) return false;
  const auto& sites = program.call_sites(function);
  const auto switches = facts::switches_around(program, function, place);
  return !sites.empty() && !switches.empty() &&
         std::all_of(sites.begin(), sites.end(), [&](const CallRef& site) {
           facts::Switches outer;
           return facts::is_switched_off_by(program, function, switches, site, outer);
         });
}

}  // namespace

bool Left::is_run(Ref place) const {
  const bool is_reached = reached.is_run(place) &&
                          (place.module == &program.root() ||
                           facts::certainty_of_reach(program, place) == facts::Certainty::certain);
  return is_reached && !facts::is_switched_off(program, place) &&
         !is_switched_off_by_callers(program, place) && !facts::is_never_made(program, place);
}

bool Left::trains() const {
  return !program.calls_named("backward").empty() || !surely_trains_nothing(program, reached);
}

bool Left::runs_on_every_rank(Ref place) const {
  return program.guarded_by_rank(place) == RankTest::none && is_run(place);
}

bool Left::is_told(Ref place) const {
  return std::any_of(told.begin(), told.end(), [&](const Told& each) {
    return std::any_of(each.places.begin(), each.places.end(), [&](Ref other) {
      return other.module == place.module && place.module->tree().contains(place.node, other.node);
    });
  });
}

std::string place_of(Ref node) {
  return node.module->path() + ":" + std::to_string(node.module->tree().line_of(node.node));
}

std::vector<Remaining> what_remains(const ReachedCode& reached, const std::vector<Finding>& found,
                                    std::int64_t ranks) {
  Left left(reached, found, ranks);
  for (const Topic topic : kTopics) topic(left);
  std::vector<Entry> entries = entries_of(left);
  const std::string& script = reached.program().root().path();
  for (Entry& each : entries) {
    auto& places = each.places;
    std::sort(places.begin(), places.end(), [&](const RemainingPlace& a, const RemainingPlace& b) {
      return order_of(script, a) < order_of(script, b);
    });
    places.erase(std::unique(places.begin(), places.end()), places.end());
  }
  std::stable_sort(entries.begin(), entries.end(), [&](const Entry& a, const Entry& b) {
    return a.harm != b.harm ? a.harm < b.harm
                            : order_of(script, a.places[0]) < order_of(script, b.places[0]);
  });
  std::vector<Remaining> out;
  for (Entry& each : entries) {
    const RemainingPlace first = each.places.front();
    each.places.erase(each.places.begin());
    out.push_back({first.file, first.line, std::move(each.text), std::move(each.places)});
  }
  return out;
}

}  // namespace bench::diagnose
