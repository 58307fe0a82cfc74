"""Measures the host RAM of real training runs on this machine's CPU.

    python measure.py                 every case of cases.json, results replace measured.jsonl
    python measure.py --only load-bf16,full-small   only these; their lines are replaced

Each case is a process tree of its own. Many times a second its pages are counted, each page once: private and shared pages by their
proportional share (forked workers share what they have not written), mapped files as the largest process has them. The
highest level of a single process is taken from the kernel's own high-water mark, which misses nothing.
"""

import argparse
import datetime
import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
RESULTS = os.path.join(HERE, "measured.jsonl")
EVERY_S = 0.03
PACKAGES = ("torch", "transformers", "trl", "peft", "accelerate", "datasets", "safetensors")


def read(path):
    try:
        with open(path, encoding="latin1") as file:
            return file.read()
    except OSError:
        return ""


def tree(leader):
    """The pids of a process and all its descendants."""
    parents = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            stat = read(f"/proc/{name}/stat")
            if stat:
                parents.setdefault(int(stat[stat.rindex(")") + 2 :].split()[1]), []).append(int(name))
    found, queue = [], [leader]
    while queue:
        pid = queue.pop()
        found.append(pid)
        queue += parents.get(pid, [])
    return found


def kib(text, key):
    match = re.search(rf"^{key}:\s+(\d+) kB", text, re.M)
    return int(match[1]) * 1024 if match else 0


def look(pids):
    """Resident bytes of a tree by kind of page, and how many processes have any."""
    anonymous = shared = mapped = high = count = 0
    for pid in pids:
        rollup, status = read(f"/proc/{pid}/smaps_rollup"), read(f"/proc/{pid}/status")
        if not kib(rollup, "Rss"):
            continue
        count += 1
        anonymous += kib(rollup, "Pss_Anon")
        shared += kib(rollup, "Pss_Shmem")
        mapped = max(mapped, kib(status, "RssFile"))
        high = max(high, kib(status, "VmHWM"))
    return {"anon": anonymous, "shmem": shared, "file": mapped, "high": high, "processes": count}


def read_phases(path):
    return [(float(at), int(rank), name) for at, rank, name in (line.split() for line in read(path).splitlines())]


def run(case, work, folder):
    phases = os.path.join(folder, "phases")
    ranks = case.get("ranks", 1)
    command = [sys.executable]
    if ranks > 1:
        command += ["-m", "torch.distributed.run", "--nproc_per_node", str(ranks), "--master_port", "29571"]
    command += [os.path.join(HERE, "workload.py"), json.dumps(case), phases, work]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false", "OMP_NUM_THREADS": "2"}
    began = time.time()
    with open(os.path.join(folder, "log"), "wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
        samples, pids, tree_at = [], [], 0.0
        while process.poll() is None:
            at = time.time()
            if at - tree_at > 5 * EVERY_S:
                pids, tree_at = tree(process.pid), at
            samples.append((at, look(pids)))
            # Counting walks the page tables: it must not slow down what it watches.
            time.sleep(max(EVERY_S, time.time() - at))
    if process.returncode != 0:
        raise RuntimeError(read(os.path.join(folder, "log"))[-3000:])
    return summary(case, samples, read_phases(phases), time.time() - began)


def summary(case, samples, entered, seconds):
    levels = {}
    for at, sample in samples:
        # With several ranks a phase begins when the first one enters it.
        now = [name for when, _, name in entered if when <= at]
        phase = now[-1] if now else "launch"
        level = sample["anon"] + sample["shmem"] + sample["file"]
        if level > levels.get(phase, {"peak_bytes": 0})["peak_bytes"]:
            levels[phase] = {
                "peak_bytes": level,
                "anon_bytes": sample["anon"] + sample["shmem"],
                "file_bytes": sample["file"],
                "processes": sample["processes"],
            }
    peak_phase = max(levels, key=lambda name: levels[name]["peak_bytes"])
    peak = levels[peak_phase]["peak_bytes"]
    alone = all(sample["processes"] <= 1 for _, sample in samples)
    high = max(sample["high"] for _, sample in samples)
    return {
        **case,
        "peak_bytes": max(peak, high) if alone else peak,
        "peak_phase": peak_phase,
        "phases": levels,
        "largest_process_bytes": high,
        "seconds": round(seconds, 1),
    }


def prepare(wanted, models, work):
    used = {case["model"] for case in wanted if "model" in case}
    request = {
        "models": [{"name": name, **model} for name, model in models.items() if name in used],
        "adapters": [{"model": c["model"], "rank": c["rank"]} for c in wanted if c["kind"] == "merge"],
        "rows": [
            {"rows": c["rows"], "tokens": c["tokens"], "vocabulary": models[c["model"]]["config"]["vocab_size"]}
            for c in wanted
            if c.get("dataset") == "arrow"
        ],
    }
    if used:
        command = [sys.executable, os.path.join(HERE, "make_models.py"), json.dumps(request), work]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", help="ids, separated by commas")
    parser.add_argument("--work", help="folder for models; default: a temporary one, removed at the end")
    options = parser.parse_args()
    plan = json.loads(read(os.path.join(HERE, "cases.json")))
    only = options.only.split(",") if options.only else None
    wanted = [case for case in plan["cases"] if only is None or case["id"] in only]
    rows = {row["id"]: row for row in map(json.loads, read(RESULTS).splitlines())} if only else {}
    machine = {"cpus": os.cpu_count(), "ram_bytes": kib(read("/proc/meminfo"), "MemTotal")}
    versions = {name: importlib.metadata.version(name) for name in PACKAGES}
    work = options.work or tempfile.mkdtemp(prefix="snug-host-ram-")
    os.makedirs(work, exist_ok=True)
    try:
        prepare(wanted, plan["models"], work)
        for case in wanted:
            vocabulary = plan["models"][case["model"]]["config"]["vocab_size"] if "model" in case else None
            with tempfile.TemporaryDirectory() as folder:
                row = run({**case, "vocabulary": vocabulary} if vocabulary else case, work, folder)
            for output in ("out", "merged"):
                shutil.rmtree(os.path.join(work, output), ignore_errors=True)
            row.update(date=datetime.date.today().isoformat(), machine=machine, versions=versions)
            rows[row["id"]] = row
            print(f"{row['id']:24} {row['peak_bytes'] / 2**20:8.0f} MiB in {row['peak_phase']:8} {row['seconds']:6} s", flush=True)
            order = [one["id"] for one in plan["cases"]]
            text = "".join(json.dumps(one) + "\n" for one in sorted(rows.values(), key=lambda one: order.index(one["id"])))
            with open(RESULTS, "w", encoding="utf-8") as file:
                file.write(text)
    finally:
        if not options.work:
            shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    main()
