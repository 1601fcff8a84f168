#!/bin/bash
set -e
horovodrun -np 4 -H localhost:4 python train_hvd.py --epochs 50
