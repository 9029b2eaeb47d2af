"""Makes the small MATLAB files of tests/data/fixtures with the layouts of Cars196 and CUHK03.
    python tests/oracle/make_mat_fixtures.py"""
import os

import numpy as np
import scipy.io

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data", "fixtures")


def annotations(fields, rows):
    out = np.zeros((1, len(rows)), dtype=[(f, object) for f in fields])
    for i, row in enumerate(rows):
        for f in fields:
            value = row[f]
            out[0, i][f] = value if isinstance(value, str) else np.array([[value]], dtype=np.uint8)
    return out


def save(name, variables, compressed):
    scipy.io.savemat(os.path.join(HERE, name), variables, do_compression=compressed)
    # The header's date and platform would differ from run to run.
    path = os.path.join(HERE, name)
    data = bytearray(open(path, "rb").read())
    data[:116] = f"MATLAB 5.0 MAT-file, by scipy {scipy.__version__}".encode().ljust(116)
    open(path, "wb").write(data)


def main():
    box = {"bbox_x1": 1, "bbox_y1": 2, "bbox_x2": 3, "bbox_y2": 4}
    cars = [dict(box, relative_im_path=f"car_ims/{i:06d}.jpg", test=i % 2, **{"class": c})
            for i, c in enumerate([1, 1, 2, 98, 99, 196, 196], 1)]
    fields = ["relative_im_path", "bbox_x1", "bbox_y1", "bbox_x2", "bbox_y2", "class", "test"]
    names = np.array([[f"Car {i}" for i in range(1, 197)]], dtype=object)
    save("cars_annos.mat", {"annotations": annotations(fields, cars), "class_names": names}, True)
    for name, classes in (("cars_train_annos.mat", [3, 120]), ("cars_test_annos_withlabels.mat", [3, 120, 121])):
        rows = [dict(box, fname=f"{i:05d}.jpg", **{"class": c}) for i, c in enumerate(classes, 1)]
        save(name, {"annotations": annotations(["bbox_x1", "bbox_x2", "bbox_y1", "bbox_y2", "class", "fname"], rows)},
             False)
    files = np.array([[f"1_{p:03d}_{v}_0{k}.png"] for p in (1, 2, 3) for v in (1, 2) for k in (1, 2)], dtype=object)
    count = len(files)
    column = lambda values: np.array(values, dtype=np.float64).reshape(-1, 1)
    save("cuhk03_new_protocol_config_detected.mat", {
        "train_idx": column([1, 2, 3, 4]), "query_idx": column([5, 9]), "gallery_idx": column([7, 8, 11, 12]),
        "labels": column([1 + i // 4 for i in range(count)]), "camId": column([1 + i // 2 % 2 for i in range(count)]),
        "filelist": files}, True)
    print("made with scipy", scipy.__version__)


main()
