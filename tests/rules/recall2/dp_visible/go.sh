#!/bin/sh
CUDA_VISIBLE_DEVICES=2,3 python3 styles.py --epochs 20
