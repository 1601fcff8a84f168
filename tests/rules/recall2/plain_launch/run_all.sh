#!/bin/bash
# Two ways to start the same script.
export OMP_NUM_THREADS=4
torchrun --standalone --nproc_per_node=2 evaluate.py
python train.py --lr 0.1
