"""Works with a launcher and without one."""
import os

import torch
import torch.distributed as dist


def main():
    if "RANK" in os.environ:
        dist.init_process_group("nccl")
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    net = torch.nn.Linear(8, 1).cuda()
    print(net(torch.randn(4, 8).cuda()).mean().item())
    if dist.is_initialized():
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
