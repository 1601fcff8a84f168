"""What a rank must know and do: who it is, reduce a value, print once, save once."""
import builtins
import functools
import os

import torch
import torch.distributed as dist


def is_dist_avail_and_initialized():
    return dist.is_available() and dist.is_initialized()


def get_rank():
    return dist.get_rank() if is_dist_avail_and_initialized() else 0


def get_world_size():
    return dist.get_world_size() if is_dist_avail_and_initialized() else 1


def is_main_process():
    return get_rank() == 0


def main_only(function):
    @functools.wraps(function)
    def guarded(*args, **kwargs):
        if is_main_process():
            return function(*args, **kwargs)
        return None

    return guarded


@main_only
def save_once(state, path):
    torch.save(state, path)


def save_anywhere(state, path):
    torch.save(state, path)  # expect: DDP039


def reduce_mean(value):
    if get_world_size() == 1:
        return value
    value = value.clone()
    dist.all_reduce(value)
    return value / get_world_size()


def print_once(is_main):
    builtin_print = builtins.print

    def quiet(*args, **kwargs):
        if kwargs.pop("force", False) or is_main:
            builtin_print(*args, **kwargs)

    builtins.print = quiet


def init_distributed_mode(args):
    if "RANK" in os.environ and "WORLD_SIZE" in os.environ:
        args.rank = int(os.environ["RANK"])
        args.world_size = int(os.environ["WORLD_SIZE"])
        args.gpu = int(os.environ["LOCAL_RANK"])
    elif "SLURM_PROCID" in os.environ:
        args.rank = int(os.environ["SLURM_PROCID"])
        args.gpu = args.rank % torch.cuda.device_count()
    else:
        print("Not using distributed mode")
        args.distributed = False
        return
    args.distributed = True
    torch.cuda.set_device(args.gpu)
    dist.init_process_group(backend="nccl", init_method=args.dist_url,
                            world_size=args.world_size, rank=args.rank)
    dist.barrier()
    print_once(args.rank == 0)
