#!/bin/bash
accelerate launch --config_file four_gpus.yaml tune.py --output_dir out
