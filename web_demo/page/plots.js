// Small pictures of arrays, in the colours of the page.

const probe = document.createElement("i");

/** A colour of style.css as canvases take it. */
export function colour(name) {
  probe.style.color = `var(--${name})`;
  probe.hidden = true;
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

/** A canvas as sharp as the screen is; `draw(context, width, height)` is called when its size or the colours change. */
export function canvas(label, draw) {
  const element = document.createElement("canvas");
  element.setAttribute("role", "img");
  element.setAttribute("aria-label", label);
  const redraw = () => {
    const { width, height } = element.getBoundingClientRect();
    if (!width || !height) return;
    const scale = devicePixelRatio || 1;
    element.width = Math.round(width * scale);
    element.height = Math.round(height * scale);
    const context = element.getContext("2d");
    context.scale(scale, scale);
    draw(context, width, height);
  };
  new ResizeObserver(redraw).observe(element);
  const gone = new AbortController();
  const recolour = () => (element.isConnected ? redraw() : gone.abort());
  document.addEventListener("themechange", recolour, gone);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolour, gone);
  return element;
}

export function range(values) {
  let [low, high, sum] = [Infinity, -Infinity, 0];
  for (const value of values) {
    const number = Number(value);
    if (number < low) low = number;
    if (number > high) high = number;
    sum += number;
  }
  return { low, high, mean: sum / values.length };
}

/** The values as a line; where there are more of them than pixels, all that fall on one. */
export function lineOf(values, label) {
  return canvas(label, (context, width, height) => {
    const { low, high } = range(values);
    const y = (value) => height - 3 - ((Number(value) - low) / (high - low || 1)) * (height - 6);
    context.strokeStyle = colour("accent");
    context.lineWidth = 1.5;
    context.lineJoin = "round";
    context.beginPath();
    const step = Math.max(1, values.length / (2 * width));
    for (let i = 0; i < values.length; i += step) {
      context.lineTo((i / Math.max(values.length - 1, 1)) * width, y(values[Math.floor(i)]));
    }
    context.stroke();
  });
}

/** Rows of values: time goes to the right, one line of pixels for each element. */
export function heatmapOf(values, rows, columns, label) {
  return canvas(label, (context, width, height) => {
    const { low, high } = range(values);
    const most = Math.max(Math.abs(low), Math.abs(high)) || 1;
    const [positive, negative] = [colour("accent"), colour("before")].map(rgb);
    const image = new ImageData(rows, columns);
    for (let t = 0; t < rows; t++) {
      for (let i = 0; i < columns; i++) {
        const value = Number(values[t * columns + i]) / most;
        const ink = value >= 0 ? positive : negative;
        image.data.set([...ink, 255 * Math.sqrt(Math.abs(value))], 4 * (i * rows + t));
      }
    }
    const small = new OffscreenCanvas(rows, columns);
    small.getContext("2d").putImageData(image, 0, 0);
    context.imageSmoothingEnabled = false;
    context.drawImage(small, 0, 0, width, height);
  });
}

/** The three numbers of a colour that `colour` gave. */
export function rgb(text) {
  const found = text.match(/[\d.]+/g).map(Number);
  return text.startsWith("color(") ? found.slice(0, 3).map((part) => part * 255) : found.slice(0, 3);
}
