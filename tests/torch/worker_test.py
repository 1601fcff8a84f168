"""The real worker as users and launchers start it: through bench, by torchrun, by Slurm, by hand.

Usage: worker_test.py BUILD_DIR TEST...   (a TEST is Launchers.test_torchrun; none runs all)
"""
import json
import math
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

BIN = ""
TIME_OUT_S = 400  # ends what hangs, before ctest does

# What launchers set; a test sees only what it sets itself.
LAUNCHER_VARIABLES = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT",
                      "SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS", "SLURM_NTASKS_PER_NODE")


def environment(**variables):
    clean = {k: v for k, v in os.environ.items() if k not in LAUNCHER_VARIABLES}
    return {**clean, "OMP_NUM_THREADS": "1", **{k: str(v) for k, v in variables.items()}}


class WorkerTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.out = directory.name

    def reserved_port(self):
        """A port that nobody else is given during the test. Nothing listens there; a store, which lets addresses be
        reused, can."""
        reserved = socket.socket()
        self.addCleanup(reserved.close)
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        reserved.bind(("127.0.0.1", 0))
        return reserved.getsockname()[1]

    def bench(self, *arguments, expect=0):
        run = subprocess.run([BIN + "/bench", *arguments, "--out", self.out + "/run"], text=True,
                             capture_output=True, timeout=TIME_OUT_S, env=environment())
        self.assertEqual(run.returncode, expect, run.stdout + run.stderr)
        return run.stdout + run.stderr

    def results(self):
        with open(self.out + "/run/results.json") as file:
            return {b["name"]: b for b in json.load(file)["benchmarks"]}

    def job_file(self, kind="verify", **case):
        """A small verification by two CPU ranks, unless the arguments say otherwise."""
        work = {"scenario": "by_hand", "model": {"name": "resnet18", "input_shape": [3, 32, 32]},
                "strategy": "distributed", "gpus": [0, 1], "batch": 4, "device": "cpu",
                "execute": "numeric", **case}
        path = self.out + "/job.json"
        with open(path, "w") as file:
            json.dump({"kind": kind, "steps": 2, "graph_file": self.out + "/step.graph", "case": work}, file)
        return path

    def start_worker(self, job, **variables):
        return subprocess.Popen([BIN + "/bench-worker", "--job", job], text=True, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, env=environment(**variables))

    def reports_of(self, processes):
        """The ranks' reports, by rank, and what else they printed."""
        reports, rest = {}, ""
        for process in processes:
            out, errors = process.communicate(timeout=TIME_OUT_S)
            rest += errors
            for line in out.splitlines():
                if not line.startswith("{"):
                    rest += line + "\n"
                    continue
                message = json.loads(line)
                if message["type"] == "report":
                    reports[message["report"]["rank"]] = message["report"]
        return reports, rest

    def assert_trained_together(self, reports, rest):
        self.assertEqual(sorted(reports), [0, 1], rest)
        for report in reports.values():
            self.assertEqual(report["status"], "ok", report.get("message"))
        first, second = (reports[r]["parameters"] for r in (0, 1))
        self.assertEqual(first, second)
        self.assertGreater(max(p["change_norm"] for p in first), 0)
        self.assertNotEqual(reports[0]["losses"], reports[1]["losses"])


class Launchers(WorkerTest):
    def test_torchrun(self):
        command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port",
                   str(self.reserved_port()), "--no-python", BIN + "/bench-worker", "--job", self.job_file()]
        launch = subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  env=environment())
        self.assert_trained_together(*self.reports_of([launch]))

    def test_slurm(self):
        job, port = self.job_file(), self.reserved_port()
        ranks = [self.start_worker(job, SLURM_PROCID=r, SLURM_LOCALID=r, SLURM_NTASKS=2, SLURM_NTASKS_PER_NODE=2,
                                   MASTER_ADDR="127.0.0.1", MASTER_PORT=port) for r in (0, 1)]
        self.assert_trained_together(*self.reports_of(ranks))


class Rendezvous(WorkerTest):
    def worker_fails(self, *expected, **variables):
        begin = time.monotonic()
        reports, rest = self.reports_of([self.start_worker(self.job_file(), **variables)])
        seconds = time.monotonic() - begin
        text = rest + "".join(report["message"] for report in reports.values())
        for part in expected:
            self.assertIn(part, text)
        return seconds

    def test_port_in_use(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            self.worker_fails(f"127.0.0.1:{port} is in use: set MASTER_PORT to a free port",
                              RANK=0, WORLD_SIZE=2, MASTER_PORT=port)

    def test_missing_rank_is_named_in_time(self):
        port = self.reserved_port()
        seconds = self.worker_fails(f"rank 1 of 2 did not reach 127.0.0.1:{port} within 2 s",
                                    RANK=0, WORLD_SIZE=2, MASTER_PORT=port, BENCH_RENDEZVOUS_TIMEOUT=2)
        self.assertGreaterEqual(seconds, 2)

    def test_missing_first_rank(self):
        port = self.reserved_port()
        self.worker_fails(f"rank 1 cannot reach the store at 127.0.0.1:{port}",
                          RANK=1, WORLD_SIZE=2, MASTER_PORT=port, BENCH_RENDEZVOUS_TIMEOUT=2)

    def test_wrong_world_size(self):
        self.worker_fails("WORLD_SIZE is 3, the case has 2 GPUs",
                          RANK=0, WORLD_SIZE=3, MASTER_PORT=self.reserved_port())

    def test_no_port(self):
        self.worker_fails("MASTER_PORT", "WORLD_SIZE=2", RANK=0, WORLD_SIZE=2)

    def test_time_out_that_is_no_number(self):
        self.worker_fails("BENCH_RENDEZVOUS_TIMEOUT=soon: expected seconds",
                          RANK=0, WORLD_SIZE=2, MASTER_PORT=self.reserved_port(), BENCH_RENDEZVOUS_TIMEOUT="soon")


class OutOfMemory(WorkerTest):
    def test_names_what_holds_the_memory(self):
        # 900 MiB hold the MLP's parameters and gradients, 312.52 MiB each, and not its momentum. The
        # step does not come to its end, and yet its gradients are called so.
        job = self.job_file(kind="record", model={"name": "mlp"}, strategy="single", gpus=[0], batch=1,
                            device="vgpu", execute="shape", device_memory_bytes=900 << 20)
        reports, rest = self.reports_of([self.start_worker(job)])
        self.assertEqual(reports[0]["status"], "out_of_memory", rest)
        self.assertIn("Tried to allocate 312.50 MiB", reports[0]["message"])
        self.assertRegex(reports[0]["message"],
                         "The request is for optimizer.state; in use are parameters 312.5. MiB, gradients 312.5. MiB")


class Runs(WorkerTest):
    def test_fashion_mnist(self):
        arguments = ["--scenario", "dp_vs_ddp", "--device", "cpu", "--gpus", "0", "--strategy", "single", "--model",
                     "resnet18", "--input", "3x32x32", "--batch", "8", "--steps", "3", "--warmup", "0", "--data"]
        self.bench(*arguments, "fashion_mnist")
        with open(self.out + "/run/samples.jsonl") as file:
            losses = [json.loads(line)["loss"] for line in file if '"loss"' in line]
        self.assertEqual(len(losses), 3)
        self.assertTrue(all(math.isfinite(loss) and loss > 0 for loss in losses), losses)
        # Every step sees other images, unlike synthetic data.
        self.assertEqual(len(set(losses)), 3)

    def test_measured_single(self):
        self.bench("--scenario", "dp_vs_ddp", "--device", "vgpu", "--gpus", "0,1", "--model", "resnet18",
                   "--batch", "64", "--strategy", "single,distributed", "--measured-single", "50")
        shown = {name.split("strategy:")[1].split("/")[0] + name.split("gpus:")[1][0]: b
                 for name, b in self.results().items() if "batch:64" in name}
        self.assertAlmostEqual(shown["single1"]["step_ms_p50"], 50, delta=0.05)
        # Two GPUs share the batch: less than the single step, more than half of it.
        self.assertLess(shown["distributed2"]["step_ms_p50"], 50)
        self.assertGreater(shown["distributed2"]["step_ms_p50"], 25)

    def test_measured_communication(self):
        """Two Gloo processes: what a virtual GPU's recording says was sent is what they send."""
        arguments = ["--scenario", "dp_vs_ddp", "--gpus", "0,1", "--model", "resnet18", "--input", "3x32x32",
                     "--batch", "8", "--strategy", "single,distributed", "--steps", "4", "--warmup", "2"]
        sent = {}
        for device in ("vgpu", "cpu"):
            text = self.bench(*arguments, "--device", device)
            cases = {name.split("strategy:")[1].split("/")[0]: case
                     for name, case in self.results().items() if "batch:8" in name}
            sent[device] = {strategy: case["bytes_communicated"] for strategy, case in cases.items()}
        self.assertEqual(sent["cpu"], sent["vgpu"])
        # Gradients of 11.7 million parameters, both ways, and the statistics of BatchNorm.
        self.assertGreater(sent["cpu"]["distributed"], 2 * 4 * 11.6e6)
        for case in cases.values():
            shares = [case["compute_busy"], case["comm_exposed"]]
            self.assertTrue(all(0 <= share <= 1 for share in shares), shares)
            self.assertLessEqual(sum(shares), 1 + 1e-9)
            idle = [value for key, value in case.items() if key.startswith("idle_gpu")]
            self.assertAlmostEqual(sum(idle) / len(idle), 1 - sum(shares), places=6)
        self.assertGreater(cases["single"]["compute_busy"], 0)
        self.assertEqual(cases["single"]["comm_exposed"], 0)
        self.assertEqual(cases["single"]["comm_overlap"], 1)
        self.assertGreater(cases["distributed"]["comm_exposed"], 0)
        self.assertRegex(text, r"All-reduces, median from issue to end: resnet18, DDP.*: [0-9.]+ [KM]iB in [0-9.]+ ms, ")
        with open(self.out + "/run/samples.jsonl") as file:
            samples = [json.loads(line) for line in file if "strategy:distributed" in line]
        self.assertEqual(len(samples), 2 * 4)
        for sample in samples:
            self.assertGreaterEqual(len(sample["all_reduce_ms"]), 2)
            self.assertLessEqual(sample["exposed_ms"], sample["communication_ms"])
            # All of them together, each from its issue on: no longer than their sum.
            self.assertLessEqual(max(sample["all_reduce_ms"]), sample["communication_ms"] + 0.01)

    def test_max_batch_names_what_failed_first(self):
        self.bench("--scenario", "max_batch", "--device", "vgpu", "--gpus", "0", "--model", "resnet18",
                   "--strategy", "single", "--machine", "1xgtx-1080")
        with open(self.out + "/run/results.json") as file:
            text = file.read()
        self.assertIn("does not fit: vgpu out of memory. Tried to allocate", text)
        self.assertRegex(text, r"The request is for activations; in use are activations [0-9.]+ GiB, ")

    def test_model_that_trains_differently_is_wrong(self):
        import torch

        class RandomMask(torch.nn.Module):
            """Dropout as a function, which verification cannot switch off."""

            def __init__(self):
                super().__init__()
                self.fc = torch.nn.Linear(8, 4)

            def forward(self, x):
                return self.fc(torch.nn.functional.dropout(x, 0.5, True))

        path = self.out + "/masked.pt"
        torch.jit.script(RandomMask()).save(path)
        text = self.bench("--scenario", "dp_vs_ddp", "--device", "vgpu", "--gpus", "0,1", "--model", path,
                          "--input", "8", "--batch", "8", "--strategy", "distributed", expect=1)
        self.assertIn("differs from single", text)
        wrong = next(b for name, b in self.results().items() if "strategy:distributed" in name)
        self.assertNotIn("step_ms_p50", wrong)

    def test_interrupt_keeps_finished_cases(self):
        run = self.out + "/run"
        bench = subprocess.Popen([BIN + "/bench", "--scenario", "dp_vs_ddp", "--device", "vgpu", "--gpus", "0,1,2,3",
                                  "--out", run], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                 env=environment(BENCH_TEST_RUN=self.out))
        while bench.poll() is None and not self.finished(run):
            time.sleep(0.05)
        bench.send_signal(signal.SIGINT)
        _, text = bench.communicate(timeout=TIME_OUT_S)
        self.assertNotIn(bench.returncode, (0, 1, 2, 3), text)
        kept = self.finished(run)
        self.assertGreaterEqual(kept, 1)
        self.assertLess(kept, 51)
        self.assertEqual(self.processes_of_run(), [])

    def finished(self, run):
        try:
            with open(run + "/results.json") as file:
                return sum("step_ms_p50" in b for b in json.load(file)["benchmarks"])
        except OSError:
            return 0

    def processes_of_run(self):
        """Processes that carry this test's mark in their environment."""
        mark, found = f"BENCH_TEST_RUN={self.out}".encode(), []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/environ", "rb") as file:
                    if mark in file.read().split(b"\0"):
                        found.append(pid)
            except OSError:
                pass  # ended meanwhile, or another user's
        return found


if __name__ == "__main__":
    BIN = os.path.join(sys.argv.pop(1), "bin")
    unittest.main(verbosity=2)
