"""Global batch divided by the world size without a check; Lightning-free hydra style."""
import os

import hydra
import torch
import torch.distributed as dist
from hydra.utils import instantiate
from omegaconf import DictConfig
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler


@hydra.main(config_path="conf", config_name="train", version_base=None)
def main(cfg: DictConfig) -> None:
    dist.init_process_group("nccl")
    world_size = dist.get_world_size()
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    batch_size = cfg.train.global_batch_size // world_size  # expect: DDP043
    dataset = instantiate(cfg.dataset)
    sampler = DistributedSampler(dataset, shuffle=True)
    loader = DataLoader(dataset, batch_size=batch_size, sampler=sampler,
                        num_workers=cfg.train.workers)
    model = instantiate(cfg.model)
    optimizer = instantiate(cfg.optimizer, params=model.parameters())
    model = model.cuda(local_rank)  # expect: DDP045
    model = DDP(model, device_ids=[local_rank])
    for epoch in range(cfg.train.epochs):
        sampler.set_epoch(epoch)
        for batch in loader:
            loss = model(batch.cuda(local_rank)).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if dist.get_rank() == 0:
            torch.save(model.module.state_dict(), f"epoch_{epoch}.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
