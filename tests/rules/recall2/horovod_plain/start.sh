#!/bin/bash
set -e
python train_hvd.py --epochs 5  # expect: HVD004
