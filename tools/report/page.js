
"use strict";
(() => {
  const find = (id) => document.getElementById(id);
  const dataOf = (id) => { const block = find(id); return block && JSON.parse(block.textContent); };
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const isDark = matchMedia("(prefers-color-scheme: dark)");
  const redraws = [];
  isDark.addEventListener("change", () => redraws.forEach((draw) => draw()));

  // Neighbouring numbers get hues that are far apart.
  const classColour = (i, strong) =>
    `hsl(${(i * 137.508) % 360} ${strong ? 75 : 65}% ${(isDark.matches ? 62 : 46) + (i % 3) * 6 - 6}%)`;
  const short = (v) => {
    const size = Math.abs(v);
    return size !== 0 && (size < 1e-4 || size >= 1e7) ? v.toExponential(2) : String(+v.toPrecision(4));
  };

  // Values under the pointer, read off the lines of a chart.
  const tip = find("tip");
  for (const svg of document.querySelectorAll("svg[data-plot]")) {
    const [left, top, right, bottom] = svg.dataset.plot.split(" ").map(Number);
    const [x0, x1, y0, y1] = svg.dataset.range.split(" ").map(Number);
    const factor = "percent" in svg.dataset ? 100 : 1;
    const across = "log" in svg.dataset ? (v) => 10 ** v : (v) => v;
    const lines = [...svg.querySelectorAll("polyline:not(.hidden)")].map((line) => ({
      name: line.dataset.name,
      points: line.getAttribute("points").trim().split(" ").map((pair) => pair.split(",").map(Number)),
    }));
    const cursor = document.createElementNS("http://www.w3.org/2000/svg", "line");
    cursor.setAttribute("class", "cursor");
    cursor.setAttribute("y1", top);
    cursor.setAttribute("y2", bottom);
    const leave = () => { tip.hidden = true; cursor.remove(); };
    svg.addEventListener("pointermove", (event) => {
      const box = svg.getBoundingClientRect();
      const x = (event.clientX - box.left) / box.width * svg.viewBox.baseVal.width;
      if (x < left - 4 || x > right + 4 || !lines.length) { leave(); return; }
      const nearest = lines.map((line) => line.points.reduce((a, b) => Math.abs(b[0] - x) < Math.abs(a[0] - x) ? b : a));
      const at = nearest.reduce((a, b) => Math.abs(b[0] - x) < Math.abs(a[0] - x) ? b : a)[0];
      cursor.setAttribute("x1", at);
      cursor.setAttribute("x2", at);
      svg.append(cursor);
      const rows = lines.map((line, i) => Math.abs(nearest[i][0] - at) > 20 ? "" :
        `${line.name}: ${short((y0 + (bottom - nearest[i][1]) / (bottom - top) * (y1 - y0)) * factor)}`);
      tip.replaceChildren(...[short(across(x0 + (at - left) / (right - left) * (x1 - x0))), ...rows.filter(Boolean)].map((text) => {
        const row = document.createElement("div");
        row.textContent = text;
        return row;
      }));
      tip.hidden = false;
      tip.style.left = `${Math.min(event.pageX + 14, document.documentElement.clientWidth - tip.offsetWidth - 8)}px`;
      tip.style.top = `${event.pageY + 14}px`;
    });
    svg.addEventListener("pointerleave", leave);
  }

  // Squares of a sheet of pictures.
  const drawSquare = (context, sheet, index, x, y, side) => {
    const from = Number(sheet.dataset.side);
    const columns = Number(sheet.dataset.columns);
    if (sheet.complete && sheet.naturalWidth) {
      context.drawImage(sheet, index % columns * from, Math.floor(index / columns) * from, from, from, x, y, side, side);
    }
  };

  const map = dataOf("map-data");
  if (map) {
    const canvas = find("map-canvas");
    const card = find("map-card");
    const sheet = find("map-sheet");
    const context = canvas.getContext("2d");
    const count = map.classes.length;
    let zoom = 1, panX = 0, panY = 0, under = -1, drag = null;
    const side = () => Math.min(canvas.width, canvas.height) - 60;
    const place = (i) => [
      canvas.width / 2 + ((map.positions[2 * i] / 9999 - 0.5) * side() + panX) * zoom,
      canvas.height / 2 + ((map.positions[2 * i + 1] / 9999 - 0.5) * side() + panY) * zoom,
    ];
    const draw = () => {
      const ratio = window.devicePixelRatio || 1;
      const width = Math.round(canvas.clientWidth * ratio);
      const height = Math.round(width * (canvas.clientWidth < 600 ? 1 : 0.7));
      if (canvas.width !== width || canvas.height !== height) { canvas.width = width; canvas.height = height; }
      context.clearRect(0, 0, width, height);
      const pictures = find("map-pictures").checked;
      const radius = Math.min(7, 2.6 + zoom * 0.5) * ratio;
      const square = Math.min(48, 13 + 5 * zoom) * ratio;
      const chosen = under >= 0 ? map.classes[under] : -1;
      for (const top of chosen < 0 ? [false] : [false, true]) {
        for (let i = 0; i < count; ++i) {
          if (chosen >= 0 && (map.classes[i] === chosen) !== top) continue;
          const [x, y] = place(i);
          if (x < -50 || y < -50 || x > width + 50 || y > height + 50) continue;
          context.globalAlpha = chosen >= 0 && !top ? 0.18 : 0.9;
          context.fillStyle = context.strokeStyle = classColour(map.classes[i], top);
          if (pictures) {
            drawSquare(context, sheet, i, x - square / 2, y - square / 2, square);
            context.lineWidth = 1.5 * ratio;
            context.strokeRect(x - square / 2, y - square / 2, square, square);
          } else {
            context.beginPath();
            context.arc(x, y, top ? radius * 1.5 : radius, 0, 7);
            context.fill();
          }
        }
      }
      context.globalAlpha = 1;
    };
    const show = (event) => {
      const box = canvas.getBoundingClientRect();
      const scale = canvas.width / box.width;
      const x = (event.clientX - box.left) * scale, y = (event.clientY - box.top) * scale;
      let best = -1, least = (18 * scale) ** 2;
      for (let i = 0; i < count; ++i) {
        const [px, py] = place(i);
        const distance = (px - x) ** 2 + (py - y) ** 2;
        if (distance < least) { least = distance; best = i; }
      }
      if (best !== under) { under = best; draw(); }
      card.hidden = best < 0;
      if (best >= 0) {
        const picture = card.querySelector("canvas");
        drawSquare(picture.getContext("2d"), sheet, best, 0, 0, picture.width);
        card.querySelector("b").textContent = map.classNames[map.classes[best]];
        card.querySelector("span").textContent = map.names[best];
        const left = event.clientX - box.left, down = event.clientY - box.top;
        card.style.left = `${Math.max(0, left + 200 > box.width ? left - 195 : left + 16)}px`;
        card.style.top = `${Math.max(0, Math.min(down + 12, box.height - card.offsetHeight))}px`;
      }
    };
    canvas.addEventListener("pointerdown", (event) => {
      drag = { x: event.clientX, y: event.clientY };
      show(event);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (drag && event.pointerType === "mouse" && event.buttons) {
        const scale = canvas.width / canvas.clientWidth / zoom;
        panX += (event.clientX - drag.x) * scale;
        panY += (event.clientY - drag.y) * scale;
        drag = { x: event.clientX, y: event.clientY };
        card.hidden = true;
        draw();
      } else {
        show(event);
      }
    });
    canvas.addEventListener("pointerup", () => { drag = null; });
    canvas.addEventListener("pointerleave", () => { drag = null; under = -1; card.hidden = true; draw(); });
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      const box = canvas.getBoundingClientRect();
      const scale = canvas.width / box.width;
      const x = (event.clientX - box.left) * scale - canvas.width / 2;
      const y = (event.clientY - box.top) * scale - canvas.height / 2;
      const next = Math.min(40, Math.max(1, zoom * Math.exp(-event.deltaY * 0.0015)));
      panX += x / next - x / zoom;
      panY += y / next - y / zoom;
      zoom = next;
      draw();
    }, { passive: false });
    find("map-reset").addEventListener("click", () => { zoom = 1; panX = panY = 0; draw(); });
    find("map-pictures").addEventListener("change", draw);
    sheet.addEventListener("load", draw);
    new ResizeObserver(draw).observe(canvas.parentElement);
    redraws.push(draw);
    draw();
  }

  const refine = dataOf("refine-data");
  if (refine) {
    const sheet = find("refine-sheet");
    const slider = find("refine-step");
    const count = refine.truth.length;
    const classes = refine.classNames.length;
    const columns = classes + 1;
    const labelOf = (t, i) => refine.labels[t].rows[i];
    const shortened = (name) => name.length > 18 ? `${name.slice(0, 5)}\u2026${name.slice(-11)}` : name;
    const cell = 18;
    const xCanvas = find("refine-x"), wCanvas = find("refine-w");
    const prepare = (canvas, width, height) => {
      const ratio = Math.max(2, window.devicePixelRatio || 1);
      canvas.width = width * ratio;
      canvas.height = height * ratio;
      const context = canvas.getContext("2d");
      context.setTransform(ratio, 0, 0, ratio, 0, 0);
      context.clearRect(0, 0, width, height);
      context.font = "11px system-ui, sans-serif";
      context.textBaseline = "middle";
      return context;
    };
    const heads = 84, wide = 30, rowsAt = cell + 54;
    const drawX = () => {
      const t = Number(slider.value);
      const context = prepare(xCanvas, rowsAt + columns * wide + 190, heads + count * cell + 4);
      const ink = colour("--ink"), soft = colour("--soft"), heat = colour("--heat");
      for (let k = 0; k < columns; ++k) {
        context.save();
        context.translate(rowsAt + (k + 0.5) * wide, heads - 6);
        context.rotate(-0.7);
        context.fillStyle = k < classes ? classColour(k, true) : soft;
        context.fillText(k < classes ? shortened(refine.classNames[k]) : "all others", 0, 0);
        context.restore();
      }
      for (let i = 0; i < count; ++i) {
        const y = heads + i * cell;
        drawSquare(context, sheet, i, 2, y + 1, cell - 2);
        context.fillStyle = classColour(refine.truth[i], true);
        context.fillRect(cell + 6, y + 1, 6, cell - 2);
        context.fillStyle = soft;
        if (refine.anchors[i]) context.fillText("anchor", cell + 15, y + cell / 2 + 1);
        for (let k = 0; k < columns; ++k) {
          const share = refine.x[t].rows[i * columns + k] / 1000;
          const x = rowsAt + k * wide;
          context.fillStyle = `rgba(${heat}, ${0.05 + 0.9 * share})`;
          context.fillRect(x + 1, y + 1, wide - 2, cell - 2);
          if (k === refine.truth[i]) {
            context.strokeStyle = soft;
            context.lineWidth = 1;
            context.strokeRect(x + 1.5, y + 1.5, wide - 3, cell - 3);
          }
          if (share >= 0.01) {
            context.fillStyle = share > 0.55 ? "#fff" : ink;
            context.textAlign = "center";
            context.fillText(Math.round(share * 100), x + wide / 2, y + cell / 2 + 1);
            context.textAlign = "left";
          }
        }
        const label = labelOf(t, i);
        const right = label === refine.truth[i];
        const changed = t > 0 && label !== labelOf(t - 1, i);
        context.fillStyle = colour(right ? "--good" : "--bad");
        context.fillText((right ? "\u2713" : "\u2717 " + shortened(refine.labelNames[label])) + (changed ? "  \u2190 changed" : ""),
          rowsAt + columns * wide + 6, y + cell / 2 + 1);
      }
      let right = 0, changed = 0;
      for (let i = 0; i < count; ++i) {
        right += labelOf(t, i) === refine.truth[i];
        changed += t > 0 && labelOf(t, i) !== labelOf(t - 1, i);
      }
      find("refine-output").textContent = `t = ${t}: ${right} of ${count} right, ${changed} changed, F = ${refine.functional[t]}`;
    };
    let pointed = null;
    const drawW = () => {
      const size = cell + 4 + count * cell;
      const context = prepare(wCanvas, size, size);
      const heat = colour("--heat");
      for (let i = 0; i < count; ++i) {
        drawSquare(context, sheet, i, 1, cell + 4 + i * cell + 1, cell - 2);
        drawSquare(context, sheet, i, cell + 4 + i * cell + 1, 1, cell - 2);
        for (let j = 0; j < count; ++j) {
          const x = cell + 4 + j * cell, y = cell + 4 + i * cell;
          context.fillStyle = `rgba(${heat}, ${0.03 + 0.97 * refine.w[i * count + j] / 1000})`;
          context.fillRect(x, y, cell - 1, cell - 1);
        }
      }
      context.strokeStyle = colour("--soft");
      context.lineWidth = 1;
      for (let i = 1; i < count; ++i) {
        if (refine.truth[i] !== refine.truth[i - 1]) {
          const at = cell + 3.5 + i * cell;
          context.beginPath();
          context.moveTo(at, 0); context.lineTo(at, size);
          context.moveTo(0, at); context.lineTo(size, at);
          context.stroke();
        }
      }
      if (pointed) {
        context.strokeStyle = colour("--bad");
        context.lineWidth = 2;
        context.strokeRect(cell + 4 + pointed.j * cell - 0.5, cell + 4 + pointed.i * cell - 0.5, cell, cell);
      }
    };
    wCanvas.addEventListener("pointermove", (event) => {
      const box = wCanvas.getBoundingClientRect();
      const size = cell + 4 + count * cell;
      const j = Math.floor(((event.clientX - box.left) / box.width * size - cell - 4) / cell);
      const i = Math.floor(((event.clientY - box.top) / box.height * size - cell - 4) / cell);
      if (i < 0 || j < 0 || i >= count || j >= count || (pointed && pointed.i === i && pointed.j === j)) return;
      pointed = { i, j };
      drawW();
      find("refine-pair").textContent = `${refine.classNames[refine.truth[i]]} and ${refine.classNames[refine.truth[j]]}: ` +
        `w = ${(refine.w[i * count + j] / 1000).toFixed(3)}`;
    });
    let timer = 0;
    const stop = () => { clearInterval(timer); timer = 0; find("refine-play").textContent = "play"; };
    find("refine-play").addEventListener("click", () => {
      if (timer) { stop(); return; }
      if (slider.value === slider.max) slider.value = 0;
      find("refine-play").textContent = "stop";
      drawX();
      timer = setInterval(() => {
        slider.value = Number(slider.value) + 1;
        drawX();
        if (slider.value === slider.max) stop();
      }, 900);
    });
    slider.addEventListener("input", () => { stop(); drawX(); });
    const draw = () => { drawX(); drawW(); };
    sheet.addEventListener("load", draw);
    redraws.push(draw);
    draw();
  }
})();
