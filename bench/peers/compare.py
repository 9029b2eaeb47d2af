"""Every comparison with a peer, in one run; bench/peers/run.sh sets the stage.

    compare.py --build DIR --folder DIR [--cub DIR] [--rounds N] [--results FILE] [--docs FILE] [--mark NAME] [part ...]

Prints a table of ratios, above 1 meaning that ours is better, writes it to FILE as JSON and into the page between its
marks. Exit code 1 if a ratio is below what was promised. Parts that do not run keep the rows that FILE has of them from
the same machine."""
import argparse
import json
import os
import platform
import sys

import data_loading
import faiss
import group_loss
import networks
import numpy
import programs
import retrieval
import torch
import torchvision
from measure import Setup

PARTS = {"networks": networks.rows, "memory": networks.memory_rows, "group_loss": group_loss.rows,
         "programs": programs.rows, "retrieval": retrieval.rows, "data": data_loading.rows}


def machine(setup):
    cpu = next(line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name"))
    flags = next(line for line in open("/proc/cpuinfo") if line.startswith("flags"))
    best = "avx512" if "avx512f" in flags else "avx2" if "avx2" in flags else "baseline"
    return {"cpu": cpu, "instruction_set": os.environ.get("GLE_ISA", best), "threads": torch.get_num_threads(),
            "versions": {"python": platform.python_version(), "torch": torch.__version__,
                         "torchvision": torchvision.__version__, "faiss": faiss.__version__,
                         "numpy": numpy.__version__}}


def number(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def table(rows):
    lines = ["| work | peer | ours | peer's | ratio | at least | aim |", "|---|---|---|---|---|---|---|"]
    for r in rows:
        missed = "" if r["ratio"] >= r["at_least"] else " (missed)"
        lines.append(f"| {r['work']} | {r['peer']} | {number(r['ours'])} {r['unit']} | {number(r['theirs'])} {r['unit']} "
                     f"| **{r['ratio']:.2f}**{missed} | {r['at_least']:.3g} | {'' if r['aim'] is None else r['aim']} |")
    return "\n".join(lines)


def machine_line(found):
    versions = ", ".join(f"{name} {version}" for name, version in found["versions"].items())
    return f"{found['cpu']}, {found['instruction_set']}, {found['threads']} threads; {versions}."


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True)
    parser.add_argument("--folder", required=True)
    parser.add_argument("--cub")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--results")
    parser.add_argument("--docs")
    parser.add_argument("--mark", default="peers")
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []])
    options = parser.parse_args()
    os.makedirs(options.folder, exist_ok=True)
    setup = Setup(options.build, options.folder, options.cub, options.rounds)

    here = machine(setup)
    kept = {}
    if options.results and os.path.exists(options.results):
        before = json.load(open(options.results))
        for r in before["rows"] if before["machine"] == here else []:
            kept.setdefault(r["part"], []).append(r)
    for part in options.parts or PARTS:
        found = []
        for r in PARTS[part](setup):
            found.append({"part": part, **r})
            print(f"{r['work']}: {number(r['ours'])} against {number(r['theirs'])} {r['unit']}, {r['ratio']:.2f} times",
                  flush=True)
        if found:
            kept[part] = found
    rows = [r for part in PARTS for r in kept.get(part, [])]
    print(table(rows))
    if options.results:
        with open(options.results, "w") as out:
            json.dump({"machine": here, "rows": rows}, out, indent=1)
            out.write("\n")
    if options.docs:
        page = open(options.docs).read()
        begin, end = (f"<!-- {options.mark}: {which} -->" for which in ("begin", "end"))
        before, rest = page.split(begin)
        with open(options.docs, "w") as out:
            out.write(before + begin + "\n" + machine_line(here) + "\n\n" + table(rows) + "\n" + end + rest.split(end)[1])
    return 0 if all(r["ratio"] >= r["at_least"] for r in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
