#include "scenarios/pitfalls/steps/schedule_length.hpp"

#include "diagnose/model/accelerate.hpp"
#include "diagnose/model/made_at.hpp"
#include "scenarios/pitfalls/program/words.hpp"

#include <algorithm>
#include <set>

namespace bench::pitfalls {

using diagnose::Def;
using diagnose::DefKind;
using diagnose::Field;
using diagnose::Kind;
using diagnose::kNoNode;
using diagnose::NodeId;

namespace {

bool is_number_of_processes(std::string_view name) {
  return name == "num_processes" || name == "world_size" || name == "n_gpu" || name == "num_gpus" ||
         name == "device_count" || name == "get_world_size";
}

// eta_min=base_lr * 0.01 and the optimizer's groups are rates, not lengths.
bool is_rate(std::string_view keyword) {
  return keyword == "optimizer" || keyword == "last_epoch" ||
         says_any(keyword, {"lr", "eta", "gamma", "factor", "momentum"});
}

// Follows names to the lines that give them values, through functions that the schedule is given.
class LengthTrail {
 public:
  LengthTrail(const Program& program, Ref scheduler)
      : program_(program), here_(program.enclosing_function(scheduler)) {}

  bool counts_processes_in(Ref given) {
    visit(given, 0);
    return found_;
  }
  // A parameter, whose value comes from callers.
  bool leads_out_of_sight() const { return leads_out_; }
  // len(loader), and all others that were met on the way.
  const std::vector<Ref>& lengths() const { return lengths_; }

 private:
  static constexpr int kDeepest = 8;

  void visit(Ref expression, int depth) {
    if (!expression || found_ || depth > kDeepest) return;
    const auto& tree = expression.module->tree();
    for (NodeId at = expression.node; at < tree[expression.node].last && !found_;) {
      const Ref part = expression.with(at);
      // len(loader) is a number of batches, whatever the loader was made of.
      if (part.kind() == Kind::string) found_ = found_ || tree.string_value(at) == "WORLD_SIZE";
      const CallRef call = program_.as_call(part);
      if (call && (call.call->name == "len" || diagnose::is_prepare(call.call->name))) {
        lengths_.push_back(part);
        at = tree[at].last;
        continue;
      }
      if (part.kind() == Kind::identifier && tree[at].field != Field::name)
        visit_name(part, tree[at].field == Field::attribute, depth);
      ++at;
    }
  }

  void visit_name(Ref name, bool is_attribute, int depth) {
    const std::string_view text = name.text();
    if (is_number_of_processes(text)) found_ = true;
    if (found_ || !seen_.emplace(text, is_attribute).second) return;
    // args.steps *= accelerator.num_processes may stand in any file.
    const std::vector<const diagnose::Module*> own{name.module};
    for (const diagnose::Module* module : is_attribute ? program_.modules() : own)
      for (const std::uint32_t index : module->defs_of(text, is_attribute)) {
        const Def& def = module->defs()[index];
        const Ref target{module, def.target};
        if (def.kind == DefKind::parameter) {
          leads_out_ = leads_out_ || program_.enclosing_function(target) == here_;
        } else if (def.kind == DefKind::function) {
          for (const diagnose::Function& each : module->functions())
            if (each.name == text) visit({module, each.body}, depth + 1);
        } else if (def.value != kNoNode && def.kind != DefKind::import &&
                   def.kind != DefKind::class_definition) {
          visit({module, def.value}, depth + 1);
        }
      }
  }

  const Program& program_;
  diagnose::FunctionRef here_;
  std::set<std::pair<std::string_view, bool>> seen_;
  std::vector<Ref> lengths_;
  bool found_ = false;
  bool leads_out_ = false;
};

// What a call is given, but for its first argument, the optimizer, and rates.
std::vector<Ref> lengths_given_to(const CallRef& call) {
  const auto& tree = call.module->tree();
  std::vector<Ref> out;
  for (std::size_t i = 1; const Ref argument = call.positional(i); ++i) out.push_back(argument);
  const NodeId arguments = tree.child(call.call->node, Field::arguments);
  if (arguments == kNoNode) return out;
  for (NodeId at = arguments; at < tree[arguments].last; ++at) {
    if (tree[at].parent != arguments) continue;
    const Ref each{call.module, at};
    if (each.kind() == Kind::keyword_argument) {
      if (!is_rate(each.child(Field::name).text())) out.push_back(each.child(Field::value));
    } else if (each.kind() == Kind::dictionary_splat) {
      out.push_back(each);
    }
  }
  return out;
}

bool mentions_processes_elsewhere(const Program& program) {
  for (const diagnose::Module* module : program.modules()) {
    const auto& tree = module->tree();
    for (NodeId node = 0; node < tree.size(); ++node) {
      if (tree[node].kind == Kind::string && tree.string_value(node) == "num_processes")
        return true;
      if (tree[node].kind != Kind::identifier || tree.text(node) != "num_processes") continue;
      // notebook_launcher(main, num_processes=2) says how many there are, and so does a constant.
      const NodeId given = tree.ancestor(node, Kind::keyword_argument);
      if (given != kNoNode && tree.text(tree.child(given, Field::name)) == "num_processes")
        continue;
      if (tree[node].field == Field::left) continue;
      NodeId around = tree.ancestor(node, Kind::call);
      const diagnose::Call* call = around == kNoNode ? nullptr : module->call_at(around);
      // print("{} processes".format(accelerator.num_processes))
      if (call != nullptr && (call->name == "format" || call->name == "str")) {
        around = tree.ancestor(around, Kind::call);
        call = around == kNoNode ? nullptr : module->call_at(around);
      }
      const bool told =
          tree.ancestor(node, Kind::string) != kNoNode ||
          (call != nullptr && says_any(call->name, {"print", "info", "log", "tracker"}));
      if (!told) return true;
    }
  }
  return false;
}

}  // namespace

std::vector<Ref> lengths_behind(const Program& program, const CallRef& scheduler) {
  LengthTrail trail(program, scheduler.ref());
  for (const Ref given : lengths_given_to(scheduler)) trail.counts_processes_in(given);
  return trail.lengths();
}

namespace {

// len(loader) in what the scheduler is given, on the way to it, too.
std::vector<Ref> counts_of(const Program& program, const CallRef& scheduler,
                           std::string_view length) {
  std::vector<Ref> out = lengths_behind(program, scheduler);
  std::erase_if(out, [&](Ref each) { return each.text() != length; });
  return out;
}

}  // namespace

bool counts_between(const Program& program, const CallRef& prepare, const CallRef& scheduler,
                    std::string_view length) {
  const auto lengths = counts_of(program, scheduler, length);
  return std::any_of(lengths.begin(), lengths.end(), [&](Ref each) {
    return each.module == prepare.module && each.node > prepare.call->node &&
           each.node < scheduler.call->node;
  });
}

bool counts_above(const Program& program, const CallRef& prepare, const CallRef& scheduler,
                  std::string_view length) {
  const auto lengths = counts_of(program, scheduler, length);
  return !counts_between(program, prepare, scheduler, length) &&
         std::any_of(lengths.begin(), lengths.end(), [&](Ref each) {
           return each.module == prepare.module && each.node < prepare.call->node &&
                  program.enclosing_function(each) == program.enclosing_function(prepare.ref()) &&
                  each.node < scheduler.module->tree()[scheduler.call->node].last;
         });
}

bool reckons_with_processes(const Program& program, const CallRef& scheduler) {
  LengthTrail trail(program, scheduler.ref());
  for (const Ref given : lengths_given_to(scheduler))
    if (trail.counts_processes_in(given)) return true;
  const CallRef made = diagnose::made_at(program, scheduler);
  if (made.ref() != scheduler.ref()) {
    LengthTrail above(program, made.ref());
    for (const Ref given : lengths_given_to(made))
      if (above.counts_processes_in(given)) return true;
    return above.leads_out_of_sight() && mentions_processes_elsewhere(program);
  }
  return trail.leads_out_of_sight() && mentions_processes_elsewhere(program);
}

}  // namespace bench::pitfalls
