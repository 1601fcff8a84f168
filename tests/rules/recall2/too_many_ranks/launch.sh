#!/bin/bash
export OMP_NUM_THREADS=2
export CUDA_VISIBLE_DEVICES=0,1
torchrun --nproc_per_node 4 main.py --seed 1  # expect: LAU004
