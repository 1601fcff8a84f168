"""What torch.utils.data's samplers give: sampler_oracle.py DIR writes DIR/samplers.bin.

Rows of 64-bit integers: length, world size, rank, seed, epoch, shuffle, drop_last, count, indices.
DIR/random_sampler.bin has rows of length, seed, pass, indices of RandomSampler.
"""

import itertools
import pathlib
import struct
import sys

import torch
from torch.utils.data import DistributedSampler, RandomSampler

LENGTHS = [0, 1, 2, 3, 4, 5, 7, 8, 13, 16, 31, 64, 97, 100, 127, 256, 1009]
WORLD_SIZES = [1, 2, 3, 4, 5, 7, 8, 16, 33, 128]
SEEDS = [0, 1, 42, 2**31, 2**32 + 5, 2**63 - 1, 2**64 - 100]
EPOCHS = [0, 1, 7]


def pack(*values):
    return struct.pack(f"<{len(values)}Q", *values)


def row(length, world_size, rank, seed, epoch, shuffle, drop_last):
    sampler = DistributedSampler(range(length), num_replicas=world_size, rank=rank, shuffle=shuffle,
                                 seed=seed, drop_last=drop_last)
    sampler.set_epoch(epoch)
    indices = list(sampler)
    assert len(indices) == len(sampler)
    return pack(length, world_size, rank, seed, epoch, shuffle, drop_last, len(indices), *indices)


def rows():
    for length, world_size, drop_last in itertools.product(LENGTHS, WORLD_SIZES, (False, True)):
        ranks = sorted({0, 1 % world_size, world_size // 2, world_size - 1})
        for rank in ranks:
            yield row(length, world_size, rank, 0, 0, False, drop_last)
            for seed, epoch in itertools.product(SEEDS, EPOCHS):
                yield row(length, world_size, rank, seed, epoch, True, drop_last)
    for rank in range(8):  # a whole data set, every rank
        yield row(60000, 8, rank, 1, 2, True, False)


def random_rows():
    for length, seed in itertools.product(LENGTHS[1:], SEEDS):
        sampler = RandomSampler(range(length), generator=torch.Generator().manual_seed(seed))
        for number in range(3):
            yield pack(length, seed, number, *sampler)


def main(directory):
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "samplers.bin").write_bytes(b"".join(rows()))
    (directory / "random_sampler.bin").write_bytes(b"".join(random_rows()))


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(pathlib.Path(sys.argv[1]))
