"""Makes the tables of docs/results.md, between their marks, and the curves beside it, from the JSON files in this folder.

    python3 docs/results/page.py

Those of runs come from tools/runs.sh, learning-curve.json from bench/peers/learning_curve.py."""
import glob
import json
import math
import os
import statistics

HERE = os.path.dirname(os.path.abspath(__file__))
PAGE = os.path.join(HERE, "..", "results.md")
MARKET, CUB = ["R@1", "R@5", "R@10", "mAP"], ["R@1", "R@2", "R@4", "R@8", "NMI", "MAP@R"]
COLUMNS = {"market": MARKET, "market-short": MARKET, "market-fine": MARKET, "cub": CUB, "cub-short": CUB, "cub-epochs": CUB,
           "cub-scratch": CUB}
STRATEGIES_COLUMNS = {data: [column for column in columns if column in ("R@1", "mAP", "NMI", "MAP@R")] for data, columns in COLUMNS.items()}
COLOURS = ["#2a78d6", "#2f9e63", "#b04ac0", "#c23b3b", "#e07b00", "#7a7a7a", "#8a6d3b"]
COLOURS_OF_OTHERS = {"temperature-3-steps-3": 1, "reid": 2, "group-loss-steps-1": 3, "cross-entropy": 4, "proxy-nca": 5, "triplet": 6,
                     "triplet-cross-entropy": 6}  # the same in every curve
USUAL = "avx512"  # what runs are made with, if they do not say otherwise
FAST = "family 26"  # Zen 5, whose times are marked: the others are of a Zen 4
# What the page begins with: the measure beside R@1, runs and what they are called, the paper's figures.
SUMMARY = {
    "market": ("mAP", {"market-cross-entropy": "cross-entropy", "market-group-loss-steps-1": "Group Loss, T 1 at 3",
                       "market-group-loss": "Group Loss, T 2 at 3", "market-reid": "the paper's re-ID recipe, T 3 at 37",
                       "market-triplet-cross-entropy": "triplets, cross-entropy beside them"}, ["93.7", "78.3", "95.2", "92.1"]),
    "cub": ("NMI", {"cub-zero-shot": "none: the network as it comes", "cub-cross-entropy": "cross-entropy",
                    "cub-group-loss": "Group Loss, T 1 at 24", "cub-temperature-3-steps-3": "Group Loss, T 3 at 3",
                    "cub-proxy-nca": "Proxy-NCA"}, ["65.5", "69.0", "72.6", "71.9"]),
}
WINDOW = 10  # steps that a point of a loss curve is the mean of

EDGE = 0.3  # of a curve over named values: what its frame has beyond the first and the last, in their distance

# What a curve goes over: of each of its lines x and the run; then the runs that it is to be compared with, drawn as lines.
SWEEPS = {
    "market-fine": {
        "steps": ("Market-1501: refinement steps", "T", {"Group Loss": {t: f"steps-{t}" for t in range(1, 5)}}),
        "others": ["cross-entropy", "triplet"],
    },
    "cub-short": {
        "steps": ("CUB-200-2011: refinement steps", "T", {"Group Loss": {t: f"steps-{t}" for t in range(6)}}),
        "temperature": ("CUB-200-2011: temperature", "temperature",
                        {"Group Loss": {1: "temperature-1", 3: "temperature-3", 10: "temperature-10", 24: "steps-1", 50: "temperature-50"}}),
        "anchors": ("CUB-200-2011: anchors a class", "anchors",
                    {"of 4 pictures": {0: "anchors-0", 1: "steps-1", 2: "anchors-2", 3: "anchors-3"},
                     "of 8 pictures": {1: "classes-4", 3: "classes-4-anchors-3"}}),
        "classes": ("CUB-200-2011: classes x pictures of a class", "batch",
                    {"Group Loss": {"4 x 8": "classes-4", "8 x 4": "steps-1", "16 x 2": "classes-16"}}),
        "others": ["cross-entropy", "proxy-nca"],
    },
}


def load(name):
    with open(os.path.join(HERE, name)) as file:
        return json.load(file)


def order():
    """Of runs: as variants.txt has them, others before."""
    with open(os.path.join(HERE, "..", "..", "tools", "configs", "runs", "variants.txt")) as file:
        return [line.split()[0] for line in file if line.strip() and not line.startswith("#")]


def group_of(run):
    return max((data for data in COLUMNS if run.startswith(data + "-")), key=len)


def results_of(data):
    paths = [os.path.basename(path) for path in sorted(glob.glob(os.path.join(HERE, f"{data}-*.json")))]
    found = [result for result in map(load, paths) if "time" in result and group_of(result["run"]) == data]
    places = {run: i for i, run in enumerate(order())}
    return sorted(found, key=lambda result: places.get(result["run"], -1))


def clock(results):
    """Of runs: the shortest and the longest if they differ, on each kind of machine. Of a run that went on after an
    interruption only the last part is known, and the rest guessed."""
    parts = []
    for mark in ("", "*"):
        # Without steps there was only the evaluation at the end.
        times = [r["time"] for r in results if mark == ("*" if FAST in r.get("cpu", "") else "") and r["time"]["steps"] > r["time"]["from_step"]]
        if times:
            known = [t["processor_seconds"] * t["steps"] / (t["steps"] - t["from_step"]) for t in times]
            about = "about " if any(t["from_step"] for t in times) else ""
            unit, name = (60, "min") if max(known) >= 90 else (1, "s")
            ends = dict.fromkeys(f"{end / unit:.0f}" for end in (min(known), max(known)))
            parts.append(f"{about}{' to '.join(ends)} {name}{mark}")
    return ", ".join(parts)


def percent(row, column):
    return f"{100 * row[column]:.1f}" if row.get(column) is not None else ""


def with_spread(rows, column):
    """The mean and, in brackets, every seed's; of one seed the interval over draws of queries, if there is one."""
    text, ends = mean_percent(rows, column), interval(rows[0], column)
    if len(rows) > 1:
        return f"{text} ({', '.join(percent(row, column) for row in rows)})"
    return f"{text} ({100 * ends[0]:.1f} to {100 * ends[1]:.1f})" if ends else text


def interval(row, column):
    return row.get("intervals", {}).get(column)


def mean_percent(rows, column):
    return percent({column: statistics.fmean(row[column] for row in rows)}, column) if rows[0].get(column) is not None else ""


def markdown(head, rows):
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, ["---"] * len(head), *rows])


def made_with(result):
    """Instructions of the CPU, by the name of the backend, as in "cpu, avx2, 1 thread"."""
    return result.get("backend", f"cpu, {USUAL}").split(", ")[1]


def label(run, instructions, quote="`"):
    return quote + run + quote + ("" if instructions == USUAL else f" ({instructions.upper()})")


def by_run(results):
    groups = {}
    for result in results:
        groups.setdefault((result["run"], made_with(result)), []).append(result)
    return groups


def runs_table(data):
    columns = COLUMNS[data]
    rows = []
    for run, seeds in by_run(results_of(data)).items():
        lines = [result["evaluation"]["rows"][0] for result in seeds]
        rows.append([label(*run), ", ".join(str(result["seed"]) for result in seeds), str(seeds[0]["time"]["steps"]), clock(seeds),
                     with_spread(lines, columns[0])] + [mean_percent(lines, c) for c in columns[1:]])
    return markdown(["run", "seed", "steps", "processor"] + columns, rows) if rows else ""


def strategies_table(data):
    """A row for each combination of strategies, a column for each run that was evaluated with them."""
    columns = STRATEGIES_COLUMNS[data]
    runs, lines = [], []
    for run, seeds in by_run(results_of(data)).items():
        full = [result for result in seeds if len(result["evaluation"]["rows"]) > 1]
        if full:
            seen = ", ".join(str(result["seed"]) for result in full)
            runs.append(label(run[0].removeprefix(data + "-"), run[1]) + ("" if seen == "1" else f", seeds {seen}"))
            lines.append({rows[0]["strategies"]: " / ".join(mean_percent(rows, column) for column in columns)
                          for rows in zip(*(result["evaluation"]["rows"] for result in full))})
    return markdown([" / ".join(columns)] + runs, [[name] + [line[name] for line in lines] for name in lines[0]]) if lines else ""


def summary(data):
    """The runs that matter most, before and after all of GL++, with the seeds that each was evaluated with; the paper's below."""
    second, names, paper = SUMMARY[data]
    groups = by_run(results_of(data))
    rows = []
    for run, name in names.items():
        seeds = groups.get((run, USUAL))
        if seeds:
            evaluations = [seed["evaluation"]["rows"] for seed in seeds]
            plain, full = [rows_of[0] for rows_of in evaluations], [rows_of[-1] for rows_of in evaluations if len(rows_of) > 1]
            rows.append([name, f"`{run}`", str(len(seeds))] + [mean_percent(plain, column) for column in ("R@1", second)] +
                        [mean_percent(full, column) if full else "" for column in ("R@1", second)])
    return markdown(["loss", "run", "seeds", "R@1", second, "GL++: R@1", second], rows + [["paper: Group Loss", "", "", *paper]]) if rows else ""


def means(values, window=WINDOW):
    return [statistics.fmean(values[i:i + window]) for i in range(0, len(values) - window + 1, window)]


def off(a, b):
    """Root of the mean square of what two curves differ by."""
    return math.sqrt(statistics.fmean((x - y) ** 2 for x, y in zip(means(a), means(b))))


def tick_step(span, most):
    """1, 2 or 5 times a power of ten, so that at most so many fit."""
    power = 10 ** math.floor(math.log10(span / most))
    return next(power * factor for factor in (1, 2, 5, 10) if span / (power * factor) <= most)


def svg(path, title, x_label, y_label, series, x_names=()):
    """series: (name, [(x, y) or (x, y, low, high), which is drawn as a mark with whiskers], dashed[, number of the colour]),
    else each has the next colour. With x_names x counts them."""
    width, height, left, right, bottom = 720, 360, 56, 20, 44
    legend = []
    x, row = left, 0
    for name, *_ in series:
        wide = 42 + 6.5 * len(name)
        if x > left and x + wide > width - right:
            x, row = left, row + 1
        legend.append((x, 30 + 16 * row))
        x += wide
    top = 40 + 16 * row
    xs = [point[0] for _, points, *_ in series for point in points]
    ys = [y for _, points, *_ in series for point in points for y in point[1:]]
    low, high = min(ys), max(ys)
    step = tick_step(high - low, 7)
    low, high = math.floor(low / step) * step, math.ceil(high / step) * step
    first, last = (-EDGE, len(x_names) - 1 + EDGE) if x_names else (0, max(xs))

    def place(x, y):
        return (left + (x - first) / (last - first) * (width - left - right),
                top + (high - y) / (high - low) * (height - top - bottom))

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" '
             f'font-size="12" role="img" aria-label="{title}">',
             "<style>text{fill:#444}.g{stroke:#8884;stroke-width:1}.c{fill:none;stroke-width:1.8}"
             "@media(prefers-color-scheme:dark){text{fill:#ccc}}</style>",
             f'<text x="{left}" y="16" font-weight="bold">{title}</text>']
    for i in range(round((high - low) / step) + 1):
        x, y = place(first, low + i * step)
        parts.append(f'<path class="g" d="M{x:.1f} {y:.1f}H{width - right}"/>'
                     f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{low + i * step:.4g}</text>')
    x_step = 1 if x_names else tick_step(last, 8)
    if all(x == int(x) for x in xs):
        x_step = max(1, x_step)
    for i in range(int(last / x_step) + 1):
        x, y = place(i * x_step, low)
        name = x_names[i] if x_names else f"{i * x_step:.6g}"
        parts.append(f'<text x="{x:.1f}" y="{y + 16:.1f}" text-anchor="middle">{name}</text>')
    parts.append(f'<text x="{(left + width - right) / 2}" y="{height - 8}" text-anchor="middle">{x_label}</text>')
    parts.append(f'<text x="14" y="{height / 2}" text-anchor="middle" transform="rotate(-90 14 {height / 2})">{y_label}'
                 "</text>")
    for i, (name, points, dashed, *number) in enumerate(series):
        colour = COLOURS[(number or [i])[0] % len(COLOURS)]
        dash = ' stroke-dasharray="6 4"' if dashed else ""
        line = "M" + "L".join("{:.1f} {:.1f}".format(*place(*point[:2])) for point in points)
        parts.append(f'<path class="c" stroke="{colour}"{dash} d="{line}"/>')
        for x, y, *ends in points:
            if ends:
                (at, middle), (_, bottom_end), (_, top_end) = place(x, y), place(x, ends[0]), place(x, ends[1])
                parts.append(f'<circle cx="{at:.1f}" cy="{middle:.1f}" r="3.5" fill="{colour}"/>'
                             f'<path class="c" stroke="{colour}" d="M{at - 4:.1f} {bottom_end:.1f}h8m-4 0V{top_end:.1f}m-4 0h8"/>')
        x, y = legend[i]
        parts.append(f'<path class="c" stroke="{colour}"{dash} d="M{x} {y}h24"/><text x="{x + 30}" y="{y + 4}">{name}</text>')
    with open(path, "w") as out:
        out.write("\n".join(parts) + "\n</svg>\n")


def points_of(steps, losses):
    window = max(1, min(WINDOW, len(losses) // 30))
    return list(zip(means(steps, window), means(losses, window)))


def learning_curve():
    if not os.path.exists(os.path.join(HERE, "learning-curve.json")):
        return ""
    curves = load("learning-curve.json")["curves"]
    names = {"gle": "GLE", "torch": "PyTorch", "gle-rounding": "GLE, rounded otherwise"}
    svg(os.path.join(HERE, "learning-curve.svg"), "Market-1501, BN-Inception from scratch",
        "step", "loss", [(f"{names[c['side']]}, seed {c['seed']}", points_of(range(1, len(c["loss"]) + 1), c["loss"]), c["side"] == "torch")
                         for c in curves])
    pairs = [(a, b) for i, a in enumerate(curves) for b in curves[i + 1:]]
    rows = [[f"{names[a['side']]}, seed {a['seed']}", f"{names[b['side']]}, seed {b['seed']}",
             f"{off(a['loss'], b['loss']):.3f}", f"{abs(means(a['loss'], 50)[-1] - means(b['loss'], 50)[-1]):.3f}"]
            for a, b in pairs]
    rates = [[f"{names[c['side']]}, seed {c['seed']}", str(len(c["loss"])), f"{c['processor_seconds']:.0f} s"]
             for c in curves]
    return ("![loss over steps](results/learning-curve.svg)\n\n" +
            markdown(["one curve", "the other", "they differ by (root mean square of means over 10 steps)", "means of the last 50 steps by"], rows) +
            "\n\n" + markdown(["run", "steps", "processor"], rates))


def losses(data):
    """A colour a loss; the first run of each is solid."""
    series, seen = [], set()
    for (run, instructions), seeds in by_run(results_of(data)).items():
        for result in seeds:
            if len(result["training"]) >= WINDOW:
                steps_and_losses = zip(*((row["step"], row["loss"]) for row in result["training"]))
                series.append((f"{label(run, instructions, quote='')}, seed {result['seed']}", points_of(*steps_and_losses), run in seen,
                               COLOURS_OF_OTHERS.get(run.removeprefix(data + "-"), 0)))
                seen.add(run)
    if not series:
        return ""
    svg(os.path.join(HERE, f"{data}-losses.svg"), f"{data}: training loss", "step", "loss", series)
    return f"![training loss](results/{data}-losses.svg)"


def sweeps(data):
    """Points are of the first seed alone, as most runs have no other; what they are compared with is the mean of all seeds."""
    seeds_of = {run.removeprefix(data + "-"): seeds for (run, instructions), seeds in by_run(results_of(data)).items() if instructions == USUAL}
    results = {run: seeds[0]["evaluation"]["rows"][0] for run, seeds in seeds_of.items()}
    pictures = []
    curves = dict(SWEEPS.get(data, {}))
    others = [name for name in curves.pop("others", []) if name in results]
    for name, (title, x_label, lines) in curves.items():
        found = {line: {x: results[run] for x, run in runs.items() if run in results} for line, runs in lines.items()}
        xs = [x for x in dict.fromkeys(x for runs in lines.values() for x in runs) if any(x in runs for runs in found.values())]
        if len(xs) > 1:
            series = []
            for number, (line, runs) in enumerate((line, runs) for line, runs in found.items() if runs):
                series.append((line, [(xs.index(x) + 0.03 * number, *(100 * value for value in (row["R@1"], *(interval(row, "R@1") or ()))))
                                      for x, row in runs.items()], False, number))
            for other in others:
                seeds = seeds_of[other]
                level = 100 * statistics.fmean(seed["evaluation"]["rows"][0]["R@1"] for seed in seeds)
                mean = f", mean of {len(seeds)} seeds" if len(seeds) > 1 else ""
                series.append((other + mean, [(-EDGE, level), (len(xs) - 1 + EDGE, level)], True, COLOURS_OF_OTHERS[other]))
            svg(os.path.join(HERE, f"{data}-{name}.svg"), title, x_label, "R@1, %", series, [str(x) for x in xs])
            pictures.append(f"![{title}](results/{data}-{name}.svg)")
    return "\n\n".join(pictures)


def epochs():
    """Recall on classes that are trained on, and on those that are left out."""
    runs = [r for r in results_of("cub-epochs") if r["evaluations"]]
    if not runs:
        return ""
    series = []
    for result in runs:
        loss = result["run"].removeprefix("cub-epochs-")
        for column, kind in (("train R@1", "trained"), ("R@1", "left out")):
            series.append((f"{loss}, {kind}", [(e["step"], 100 * e[column]) for e in result["evaluations"]], kind == "trained",
                           COLOURS_OF_OTHERS.get(loss, 0)))
    svg(os.path.join(HERE, "cub-epochs.svg"), "CUB-200-2011: recall at the end of each epoch", "step", "R@1, %", series)
    return "![recall over epochs](results/cub-epochs.svg)"


def pulls():
    found = load("cub-pulls.json")
    columns = [column for column in found[0] if column not in ("temperature", "T")]
    return markdown(["temperature", "T"] + columns,
                    [[str(row["temperature"]), str(row["T"])] + [f"{1000 * row[c]:+.1f}" for c in columns] for row in found])


def ensembles():
    parts = []
    for data in ("market", "cub"):
        groups = {}
        for path in sorted(glob.glob(os.path.join(HERE, f"{data}-*-ensemble.json"))):
            result = load(path)
            seeds = "-".join(map(str, result["seeds"]))
            groups.setdefault(os.path.basename(path).removesuffix(f"-{seeds}-ensemble.json"), []).append(result)
        rows = []
        for models, results in groups.items():
            results.sort(key=lambda result: len(result["seeds"]))
            for result in results:
                singles = [load(f"{models}-{seed}.json") for seed in result["seeds"]]
                run, lines = label(singles[0]["run"], made_with(singles[0])), [single["evaluation"]["rows"][0] for single in singles]
                rows.append([run, f"1 (mean of {len(lines)})", "none"] + [mean_percent(lines, c) for c in COLUMNS[data]])
                for line in result["evaluation"]["rows"]:
                    rows.append([run, str(len(result["seeds"])), line["strategies"]] + [percent(line, c) for c in COLUMNS[data]])
        if rows:
            parts.append(markdown(["run", "models", "strategies"] + COLUMNS[data], rows))
    return "\n\n".join(parts)


PARTS = {"learning curve": learning_curve, "cub epochs": epochs, "cub pulls": pulls, "ensembles": ensembles}
for data in SUMMARY:
    PARTS[f"{data} summary"] = lambda data=data: summary(data)
for data in COLUMNS:
    PARTS[f"{data} runs"] = lambda data=data: runs_table(data)
    PARTS[f"{data} strategies"] = lambda data=data: strategies_table(data)
    PARTS[f"{data} losses"] = lambda data=data: losses(data)
    PARTS[f"{data} curves"] = lambda data=data: sweeps(data)


def main():
    with open(PAGE) as file:
        page = file.read()
    for name, make in PARTS.items():
        begin, end = f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->"
        if begin in page:
            before, rest = page.split(begin)
            text, after = make(), rest[rest.index(end):]
            page = before + begin + (text + "\n" if text else "") + after
    with open(PAGE, "w") as out:
        out.write(page)


if __name__ == "__main__":
    main()
