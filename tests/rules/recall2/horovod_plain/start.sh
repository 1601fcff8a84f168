#!/bin/bash
set -e
python train_hvd.py --epochs 5
