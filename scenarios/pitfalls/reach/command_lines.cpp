#include "scenarios/pitfalls/reach/command_lines.hpp"

#include <algorithm>
#include <string_view>

namespace bench::pitfalls::facts {

using diagnose::CallRef;
using diagnose::Field;
using diagnose::Kind;
using diagnose::kNoNode;

namespace {

// Fire() and fire.Fire(): without a component they offer whatever the file defines.
bool offers_whole_file(const Program& program, const diagnose::Module& file) {
  const auto commands = program.calls_named("Fire");
  return std::any_of(commands.begin(), commands.end(), [&](const CallRef& command) {
    return command.module == &file && !command.argument(0, "component");
  });
}

// globals()[args.task](args): the subscript of a table of names is called.
bool calls_names_of_file(const Program& program, const diagnose::Module& file) {
  const auto tables = program.calls_named("globals");
  return std::any_of(tables.begin(), tables.end(), [&](const CallRef& table) {
    const auto& tree = table.module->tree();
    const diagnose::NodeId item = tree[table.call->node].parent;
    return table.module == &file && item != kNoNode && tree[item].kind == Kind::subscript &&
           tree[item].field == Field::function;
  });
}

// fire.Fire(Trainer) and fire.Fire(Trainer()).
bool offers_methods_of(const Program& program, diagnose::ClassRef cls) {
  const auto commands = program.calls_named("Fire");
  return std::any_of(commands.begin(), commands.end(), [&](const CallRef& command) {
    const diagnose::Ref component = command.argument(0, "component");
    if (!component) return false;
    const CallRef made = program.as_call(component);
    return component.text() == cls.cls->name ||
           (made && program.class_of_call(made).cls == cls.cls);
  });
}

// The command, or what it calls, makes a process group, wraps a model or prepares one: export()
// beside train() is a tool of one process.
bool joins_a_group(const Program& program, diagnose::FunctionRef function) {
  return program.subtree_calls({function.module, function.function->body}, [](const CallRef& call) {
    return call.call->api == diagnose::Api::init_process_group ||
           call.call->api == diagnose::Api::ddp || call.call->api == diagnose::Api::data_parallel ||
           call.call->name == "prepare";
  });
}

}  // namespace

bool is_typed_by_name(const Program& program, diagnose::FunctionRef function) {
  if (function.module != &program.root() || !joins_a_group(program, function)) return false;
  if (const auto owner = program.enclosing_class({function.module, function.function->body}))
    return function.function->owner_class == owner.cls->node && offers_methods_of(program, owner);
  // A function inside of another one is no name of the file.
  if (function.module->scope_of(function.function->node) != 0) return false;
  return offers_whole_file(program, *function.module) ||
         calls_names_of_file(program, *function.module);
}

}  // namespace bench::pitfalls::facts
