// A picture that scrolls with time: the spectrum above, the waveform below.

import { canvas, colour, rgb } from "../page/plots.js";

const SECONDS = 10; // that are in view
const WAVE_SHARE = 0.26; // of the height

/** 256 colours from nothing over `name` to nearly ink. */
function palette(name) {
  const [quiet, middle, ink] = ["sunken", name, "ink"].map((each) => rgb(colour(each)));
  const loud = middle.map((part, i) => 0.45 * part + 0.55 * ink[i]);
  const between = (from, to, share) => from.map((part, i) => Math.round(part + (to[i] - part) * share)).join(" ");
  return Array.from({ length: 256 }, (_, level) => {
    const strength = (level / 255) ** 2;
    return `rgb(${strength < 0.6 ? between(quiet, middle, strength / 0.6) : between(middle, loud, (strength - 0.6) / 0.4)})`;
  });
}

export class Scope {
  #name;
  #context = null;
  #size = [0, 0];
  #colours = [];
  #debt = 0; // pixels that time has moved on, but that are not drawn yet
  #levels = new Uint8Array(0);
  #wave = new Float32Array(0);
  #still = null; // a picture that stands until time moves

  /** `name` is the colour of style.css that loud parts have, `highest` the highest frequency that is seen. */
  constructor(label, name, highest = 8000) {
    this.#name = name;
    this.highest = highest;
    this.element = canvas(label, (context, width, height) => this.#resize(context, width, height));
  }

  #resize(context, width, height) {
    this.#context = context;
    this.#size = [width, height];
    this.#colours = palette(this.#name);
    if (this.#still) this.#drawStill();
    else this.clear();
  }

  /** A picture of {levels, highs, columns, rows}, all of them at once. */
  show(still) {
    this.#still = still;
    if (this.#context) this.#drawStill();
  }

  #drawStill() {
    const [width, height] = this.#size;
    const { levels, highs, columns, rows } = this.#still;
    this.clear();
    const [step, waveHeight] = [width / columns, height * WAVE_SHARE];
    for (let column = 0; column < columns; column++) {
      const at = [column * step, step + 0.5];
      this.#paintSpectrum(levels.subarray(column * rows, (column + 1) * rows), ...at, height - waveHeight);
      const high = highs[column] / 255;
      this.#paintWave(-high, high, ...at, height - waveHeight / 2, waveHeight / 2);
    }
  }

  clear() {
    const [width, height] = this.#size;
    if (!this.#context) return;
    this.#context.fillStyle = colour("sunken");
    this.#context.fillRect(0, 0, width, height);
    this.#debt = 0;
  }

  /** Moves on by `seconds` and draws what the analyser hears. */
  draw(analyser, seconds) {
    if (!this.#context) return;
    if (this.#still) {
      this.#still = null;
      this.clear();
    }
    const [width, height] = this.#size;
    this.#debt += (Math.min(seconds, 0.5) * width) / SECONDS;
    const columns = Math.floor(this.#debt);
    if (columns < 1) return;
    this.#debt -= columns;
    this.#scroll(columns);
    const waveHeight = height * WAVE_SHARE;
    this.#drawSpectrum(analyser, width - columns, columns, height - waveHeight);
    this.#drawWave(analyser, width - columns, columns, height - waveHeight / 2, waveHeight / 2);
  }

  #scroll(columns) {
    const { canvas: own } = this.#context;
    const [width, height] = this.#size;
    this.#context.drawImage(own, -columns, 0, width, height);
    this.#context.fillStyle = this.#colours[0];
    this.#context.fillRect(width - columns, 0, columns, height);
  }

  #drawSpectrum(analyser, x, columns, height) {
    if (this.#levels.length !== analyser.frequencyBinCount) this.#levels = new Uint8Array(analyser.frequencyBinCount);
    analyser.getByteFrequencyData(this.#levels);
    this.#paintSpectrum(this.#levels.subarray(0, this.#shown(analyser)), x, columns, height);
  }

  /** How many of the levels are seen: those up to 8 kHz, where speech is. */
  #shown({ context: { sampleRate }, frequencyBinCount }) {
    return Math.min(frequencyBinCount, Math.ceil((frequencyBinCount * 2 * this.highest) / sampleRate));
  }

  #paintSpectrum(levels, x, columns, height) {
    const rows = Math.min(Math.floor(height), levels.length);
    const step = height / rows;
    for (let row = 0; row < rows; row++) {
      const level = levels[Math.floor((row * levels.length) / rows)];
      if (!level) continue;
      this.#context.fillStyle = this.#colours[level];
      this.#context.fillRect(x, height - (row + 1) * step, columns, step + 0.5);
    }
  }

  #drawWave(analyser, x, columns, middle, half) {
    if (this.#wave.length !== analyser.fftSize) this.#wave = new Float32Array(analyser.fftSize);
    analyser.getFloatTimeDomainData(this.#wave);
    let [low, high] = [0, 0];
    for (const value of this.#wave) {
      if (value < low) low = value;
      if (value > high) high = value;
    }
    this.#paintWave(low, high, x, columns, middle, half);
  }

  #paintWave(low, high, x, columns, middle, half) {
    const y = (value) => middle - Math.tanh(2 * value) * (half - 2);
    this.#context.fillStyle = this.#colours[180];
    this.#context.fillRect(x, y(high), columns, Math.max(y(low) - y(high), 1));
  }
}

/** A curve between 0 and 1 that scrolls with time. */
export class Trace {
  #context = null;
  #size = [0, 0];
  #points = []; // {time, value}, oldest first

  constructor(label) {
    this.element = canvas(label, (context, width, height) => {
      this.#context = context;
      this.#size = [width, height];
      this.draw(this.#points.at(-1)?.time ?? 0);
    });
  }

  clear() {
    this.show([]);
  }

  /** A curve of {time, value}, all of it at once. */
  show(points) {
    this.#points = [...points];
    this.draw(points.at(-1)?.time ?? 0);
  }

  add(time, value) {
    this.#points.push({ time, value });
    while (this.#points[0].time < time - SECONDS - 1) this.#points.shift();
  }

  draw(now) {
    if (!this.#context) return;
    const [width, height] = this.#size;
    const context = this.#context;
    context.clearRect(0, 0, width, height);
    context.strokeStyle = colour("line");
    context.lineWidth = 1;
    context.setLineDash([3, 4]);
    context.beginPath();
    context.moveTo(0, height / 2);
    context.lineTo(width, height / 2);
    context.stroke();
    context.setLineDash([]);
    if (this.#points.length < 2) return;
    const x = (time) => width - ((now - time) / SECONDS) * width;
    const y = (value) => height - 2 - value * (height - 4);
    context.beginPath();
    for (const { time, value } of this.#points) context.lineTo(x(time), y(value));
    context.strokeStyle = colour("good");
    context.lineWidth = 2;
    context.lineJoin = "round";
    context.stroke();
    context.lineTo(x(this.#points.at(-1).time), height);
    context.lineTo(x(this.#points[0].time), height);
    context.globalAlpha = 0.14;
    context.fillStyle = colour("good");
    context.fill();
    context.globalAlpha = 1;
  }
}
