import os
import argparse

import torch
import models


class TrainOptions:
    def parse(self):
        parser = argparse.ArgumentParser()
        parser.add_argument("--model", type=str, default="pair")
        parser.add_argument("--dataset_mode", type=str, default="aligned")
        parser.add_argument("--batch_size", type=int, default=16)
        parser.add_argument("--serial_batches", action="store_true")
        parser.add_argument("--n_epochs", type=int, default=2)
        parser.add_argument("--gpu_ids", type=str, default="0")
        parser.add_argument("--continue_train", action="store_true")
        opt, _ = parser.parse_known_args()
        parser = models.get_option_setter(opt.model)(parser, True)
        opt = parser.parse_args()
        opt.isTrain = True
        str_ids = opt.gpu_ids.split(",")
        opt.gpu_ids = []
        for str_id in str_ids:
            id = int(str_id)
            if id >= 0:
                opt.gpu_ids.append(id)
        if len(opt.gpu_ids) > 0:
            torch.cuda.set_device(torch.cuda.current_device() if "LOCAL_RANK" in os.environ else opt.gpu_ids[0])
        return opt
