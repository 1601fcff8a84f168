#!/bin/bash
CUDA_VISIBLE_DEVICES=0,1 torchrun --nproc_per_node 4 --master_port 29511 tools/train.py cfg.py  # expect: LAU004
CUDA_VISIBLE_DEVICES=2,3 torchrun tools/train.py cfg.py --nproc_per_node 2  # expect: LAU004
