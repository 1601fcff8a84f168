#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/data/loaders.hpp"
#include "scenarios/pitfalls/program/edits.hpp"
#include "scenarios/pitfalls/program/facts.hpp"

#include <algorithm>
#include <cctype>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Kind;

namespace {

// loader.sampler = DistributedSampler(loader.dataset): DataLoader lets nobody replace it.
void check_replaced_samplers(const Program& program, Report& report) {
  for (const diagnose::Module* module : program.modules())
    for (const std::uint32_t index : module->defs_of("sampler", true)) {
      const auto& def = module->defs()[index];
      const Ref target{module, def.target};
      const Ref object = target.child(diagnose::Field::object);
      const CallRef sampler = program.origin({module, def.value}, Api::distributed_sampler);
      const bool of_its_data =
          sampler && object &&
          sampler.positional(0).text() == std::string(object.text()) + ".dataset";
      if (!object || object.text() == "self" ||
          !(of_its_data || program.comes_from(object, Api::data_loader)))
        continue;
      report
          .at(target, Confidence::likely,
              "a DataLoader takes no other sampler once it is made: ValueError \"sampler attribute "
              "should not be set after DataLoader is initialized\"")
          .help = "Make the sampler first and pass it to DataLoader(sampler=...).";
    }
}

// True, True if ddp else True, and a name that is never anything else.
bool is_always_true(const Program& program, Ref value, int depth = 0) {
  constexpr int kDeepest = 16;
  if (depth > kDeepest) return false;
  if (program.written(value).kind() == Kind::true_literal) return true;
  const auto& tree = value.module->tree();
  if (value.kind() == Kind::conditional)
    return is_always_true(program, value.with(tree.child_at(value.node, 0)), depth + 1) &&
           is_always_true(program, value.with(tree.child_at(value.node, 2)), depth + 1);
  if (value.kind() != Kind::identifier) return false;
  const auto& sources = program.sources(value);
  return !sources.empty() && std::all_of(sources.begin(), sources.end(), [](const auto& source) {
    return source.how == diagnose::Source::How::value && source.ref.kind() == Kind::true_literal;
  });
}

// shuffle=shuffle of a helper that some caller gives True, where the test that makes the sampler
// does not ask for it.
bool is_true_beside_sampler(const Program& program, Ref shuffle, const CallRef& sampler) {
  const auto helper = program.enclosing_function(shuffle);
  if (shuffle.kind() != Kind::identifier || !sampler || !helper ||
      program.enclosing_function(sampler.ref()) != helper)
    return false;
  const auto& defs = shuffle.module->defs_of(shuffle.text(), false);
  if (std::any_of(defs.begin(), defs.end(), [&](std::uint32_t index) {
        const auto& def = shuffle.module->defs()[index];
        return def.kind != diagnose::DefKind::parameter &&
               program.enclosing_function(shuffle.with(def.target)) == helper;
      }))
    return false;
  const auto guards = program.guards(sampler.ref());
  const auto& sources = program.sources(shuffle);
  return std::none_of(guards.begin(), guards.end(),
                      [&](const diagnose::Guard& guard) {
                        // the parameters of the helper decide together
                        return guard.condition.kind() != Kind::attribute &&
                               guard.condition.kind() != Kind::call;
                      }) &&
         std::any_of(sources.begin(), sources.end(), [&](const auto& source) {
           return source.how == diagnose::Source::How::value &&
                  source.ref.kind() == Kind::true_literal &&
                  program.enclosing_function(source.ref) != helper;
         });
}

// None, a parameter that callers may leave at None, or one of two values.
bool is_open(const Program& program, Ref given) {
  return program.written(given).kind() == Kind::none_literal ||
         facts::contains(given.text(), " if ") || facts::is_parameter(program, given);
}

// DataLoader(data, batch_size=8, batch_sampler=batches): the batches have their size by then.
void check_batch_samplers(const Program& program, const CallRef& loader, Report& report) {
  const Ref batches = loader.argument(4, "batch_sampler");
  const CallRef made = batches ? program.made_by(batches) : CallRef{};
  // A function may give None as well.
  if (!made || loader.has_splat() || made.call->name.empty() ||
      std::isupper(static_cast<unsigned char>(made.call->name.front())) == 0)
    return;
  const Ref size = loader.argument(1, "batch_size");
  const bool is_one = size && program.integer(size) == 1;
  const auto if_true = [&](Ref given) {
    return given && program.is_literal_true(given) ? given : Ref{};
  };
  for (const Ref given :
       {is_one ? Ref{} : size, loader.argument(3, "sampler"),
        if_true(loader.argument(2, "shuffle")), if_true(loader.keyword("drop_last"))}) {
    if (!given || is_open(program, given)) continue;
    report
        .at(given, Confidence::certain,
            "batch_sampler together with what it decides itself: ValueError \"batch_sampler option "
            "is mutually exclusive with batch_size, shuffle, sampler, and drop_last\"")
        .help = "Give the size and the sampler to the BatchSampler alone.";
    return;
  }
}

// DistributedSampler(data), or a name that is nothing else in any run.
bool is_never_none(const Program& program, Ref sampler) {
  if (sampler.kind() == Kind::call) return true;
  if (sampler.kind() != Kind::identifier) return false;
  const auto& sources = program.sources(sampler);
  return !sources.empty() && std::all_of(sources.begin(), sources.end(), [&](const auto& source) {
    const CallRef made = program.as_call(source.ref);
    return source.how == diagnose::Source::How::value && made && !made.call->name.empty() &&
           std::isupper(static_cast<unsigned char>(made.call->name.front())) != 0;
  });
}

// Dropped beside a sampler that every run has; where some have none, it stays for them.
void fix_shuffle(const Program& program, const CallRef& loader, Ref sampler, Finding& finding) {
  const Ref given = loader.keyword("shuffle");
  if (!given || given.module != loader.module ||
      !loader.module->tree().contains(loader.call->node, given.node))
    return;
  if (is_never_none(program, sampler))
    remove_argument(loader, "shuffle", "Drop shuffle", finding);
  else if (sampler.kind() == Kind::identifier || sampler.kind() == Kind::attribute)
    replace(given, "(" + std::string(sampler.text()) + " is None)",
            "Shuffle where there is no sampler", finding);
}

}  // namespace

void check_sampler_argument_conflict(const Program& program, Report& report) {
  check_replaced_samplers(program, report);
  for (const CallRef& loader : program.calls(Api::data_loader)) {
    const Ref shuffle = loader.argument(2, "shuffle");
    const Ref sampler = loader.argument(3, "sampler");
    check_batch_samplers(program, loader, report);
    if (shuffle && sampler && sampler.kind() != Kind::none_literal &&
        is_true_beside_sampler(program, shuffle, sampler_of(program, loader)))
      report
          .at(shuffle, Confidence::likely,
              "a caller gives shuffle=True, and the sampler is made all the same: ValueError "
              "\"sampler option is mutually exclusive with shuffle\"")
          .help = "Hand shuffle to the sampler; shuffle=(sampler is None and shuffle) here.";
    if (shuffle && is_always_true(program, shuffle) && sampler &&
        sampler.kind() != Kind::none_literal && !facts::exclusive(shuffle, sampler) &&
        (sampler_of(program, loader) || sampler.kind() == Kind::call)) {
      Finding& finding = report.at(
          shuffle, Confidence::certain,
          "shuffle=True together with a sampler: ValueError \"sampler option is mutually exclusive "
          "with shuffle\"");
      finding.help =
          "Drop shuffle: the DistributedSampler shuffles. shuffle=(sampler is None) serves both.";
      fix_shuffle(program, loader, sampler, finding);
    }
    if (sampler && sampler_of(program, loader) && reads_iterable_dataset(program, loader))
      report
          .at(sampler, Confidence::certain,
              "a sampler for an IterableDataset: ValueError \"expected unspecified sampler "
              "option\"")
          .help = "Split the stream by rank inside the data set.";
  }
}

}  // namespace bench::pitfalls
