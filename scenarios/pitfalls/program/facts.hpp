// Facts about a program that several pitfalls need, each a short question to the program model.
#pragma once

#include "diagnose/model/role_names.hpp"
#include "scenarios/pitfalls/rule.hpp"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace bench::pitfalls::facts {

using diagnose::lowered;
bool contains(std::string_view text, std::string_view word);

// A device written in the program: 1 for "cuda:1", torch.device("cuda", 1) and 1; -1 for "cuda".
std::optional<int> cuda_index(const Program& program, Ref device);

// Number of GPUs the program can see, from the launch lines, os.environ or --gpus: of several lines
// the most. Empty where one GPU is written for one process, and another line starts ranks.
std::optional<std::int64_t> visible_gpus(const Program& program);

// Literal device ids of a wrapper call: [0, 1, 2]; empty when not a literal list.
std::vector<std::int64_t> device_ids(const Program& program, const CallRef& wrap);

// The methods that run in a forward pass of a class: forward and what it calls on self.
std::vector<diagnose::FunctionRef> forward_methods(const Program& program, diagnose::ClassRef cls);

// Classes whose instances run inside a wrapped model: the wrapped one and what its __init__ builds.
std::vector<diagnose::ClassRef> wrapped_classes(const Program& program, diagnose::Wrapper kind);

// The same for one wrapper.
std::vector<diagnose::ClassRef> wrapped_classes(const Program& program, const diagnose::Wrap& wrap);

// Calls inside a subtree of one module.
std::vector<CallRef> calls_in(Ref subtree);

// What is stored under the keys of a dictionary that has this name: state["model"] = value.
std::vector<Ref> items_stored_in(Ref name);

// .to(...) and .cuda(...) calls that place what the wrapper wraps, or the wrapper itself.
std::vector<CallRef> placements(const Program& program, const diagnose::Wrap& wrap);

// The training loop whose batches hold the node, also through calls.
const diagnose::TrainingLoop* training_loop_of(const Program& program, Ref node);

// The name is a parameter of the function that it stands in.
bool is_parameter(const Program& program, Ref name);

// The word stands anywhere in the sources: comments hold the launch lines that people use.
bool speaks_of(const Program& program, std::string_view word);

// More than one node is possible: no launch line says that there is a single one.
bool may_span_nodes(const Program& program);
bool is_single_node(const Program& program);

// os.environ["WORLD_SIZE"] = ..., wherever the program sets the variable: the assignments.
std::vector<Ref> settings_of(const Program& program, std::string_view variable);

// A break of this loop, and not of one inside it.
bool has_break(const Program& program, Ref loop);

// Something in the program or its launch lines speaks of a second node.
bool expects_nodes(const Program& program);

// The program computes the rank of the job from the node's and the one within the node.
bool computes_global_rank(const Program& program);

// The expression is under `if not distributed` or in the else of `if distributed`.
bool only_without_distribution(const Program& program, Ref node);

// The program launches or joins a process group in a way this analysis knows.
bool is_distributed(const Program& program);

bool uses_nccl(const Program& program);
bool uses_cuda(const Program& program);

// Every call that a value is computed from, through assignments and local functions; what lies
// behind a call that `ends` accepts is left out.
std::vector<Ref> calls_behind(const Program& program, Ref value,
                              const std::function<bool(Ref call)>& ends = {});

// What a backward pass starts from: the receiver, or the argument of accelerator.backward(loss).
Ref loss_of(const CallRef& backward);

// Calls of wrapped models behind a value.
std::vector<diagnose::ForwardCall> forwards_behind(const Program& program, Ref value);

// The program runs the node: its function is called from somewhere that runs, and it does not stand
// under the __main__ guard of a file that the script only imports (reachability.cpp).
bool is_reachable(const Program& program, Ref node);

// The node stands in a branch of a name that the script sets once, to the other value: ddp = False
// (switched_off.cpp).
bool is_switched_off(const Program& program, Ref node);

// A function of a package's __main__.py that nothing there calls: a command of its setup.py does,
// "bert = bert_pytorch.__main__:train".
bool is_command(const Program& program, diagnose::FunctionRef function);

// A LightningModule that the program defines and does not make: another file hands it to a Trainer,
// which calls its hooks (reachability.cpp).
bool is_left_to_others(const Program& program, diagnose::ClassRef cls);

// The function belongs to a file that is looked at alone and runs nothing itself, and it stands
// beside a wrapper: in the same class, or it makes one. Whatever uses the file runs it
// (offered.cpp).
bool is_offered(const Program& program, diagnose::FunctionRef function);

// All that runs the node runs it once, in the process that starts the ranks afterwards.
bool only_before_ranks(const Program& program, Ref node);

// All that runs the node runs it in the process that calls mp.spawn, above it or beside it: a
// fallback for one GPU, a report at the end. No rank comes by (reachability.cpp).
bool only_in_parent(const Program& program, Ref node);

// Nothing in the program makes an object of the class that the node stands in (offered.cpp), or all
// that would do so is given arguments that do not fit. False where files are looked at as a
// library, or classes are found by their names.
bool is_never_made(const Program& program, Ref node);

// Only a mode beside training comes by, which is often run as one process: the node, or the only
// call that leads to it, stands in a branch of an option that returns (`if args.submission: ...;
// return`) and trains nothing, in a program that trains (reachability.cpp).
bool only_in_a_side_mode(const Program& program, Ref node);

// Nothing is trained: the program has forward passes without gradients and no backward pass.
bool only_evaluates(const Program& program);

// Under `with main_process_first():` and its kin, also in a caller: ranks come one after another.
bool rank_goes_first(const Program& program, Ref node);

// Under `with FileLock("data.lock"):`, also in a caller: one rank after another, and the second
// finds what the first has made.
bool under_lock(const Program& program, Ref node);

// The statement is sys.exit(0), os.abort() or their kin, and exit(0) if done else None is not.
bool ends_process(Ref statement);

// The node stands in a data set's class: what it writes are samples, not the state of a run.
bool in_dataset(const Program& program, Ref node);

// An expression that is true on the first rank only, for code put beside `node`; empty when the
// file offers none.
std::string main_rank_condition(const Program& program, Ref node);

// Two nodes of which one run reaches one at most: different branches of one if statement, or under
// conditions that contradict each other: `mode == "a"` and `mode == "b"` (exclusive.cpp).
bool exclusive(Ref a, Ref b);

// The same by the conditions alone, of nodes in different functions that ask for one setting of the
// program: args["arch"] == "a" and self.args["arch"] not in ["a", "b"].
bool are_of_different_modes(Ref a, Ref b);

// Everything the object can be where there are GPUs is a wrapper (surely_wrapped.cpp).
bool is_surely_wrapped(const Program& program, Ref object);

// first.net = DDP(first.net) of one object of the class: what another one has under that name,
// self.net, may be without a wrapper.
bool is_given_to_one_of_several(const Program& program, Ref object, const diagnose::Wrap& wrap);

// A class of the program that is wrapped holds BatchNorm, or a torchvision model is wrapped.
bool has_batch_norm(const Program& program, const diagnose::Wrap& wrap);

}  // namespace bench::pitfalls::facts
