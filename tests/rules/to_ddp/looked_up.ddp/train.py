import os
import torch
import torch.distributed as dist
from data import create_dataset
from models import create_model
from options.train_options import TrainOptions

local_rank = int(os.environ.get("LOCAL_RANK", 0))

if __name__ == "__main__":
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl")
    opt = TrainOptions().parse()
    dataset = create_dataset(opt)
    model = create_model(opt)
    model.setup(opt)
    for epoch in range(1, opt.n_epochs + 1):
        dataset.dataloader.sampler.set_epoch(epoch)
        for i, data in enumerate(dataset):
            model.set_input(data)
            model.optimize_parameters()
        model.update_learning_rate()
        model.save_networks("latest")
    dist.destroy_process_group()
