// A picture of a signal that nobody plays: what a Scope shows all at once.

/** The discrete Fourier transform in place; the length is a power of two. */
export function transform(real, imaginary) {
  const n = real.length;
  for (let i = 1, j = 0; i < n; i++) {
    let bit = n >> 1;
    for (; j & bit; bit >>= 1) j ^= bit;
    j ^= bit;
    if (i < j) {
      [real[i], real[j]] = [real[j], real[i]];
      [imaginary[i], imaginary[j]] = [imaginary[j], imaginary[i]];
    }
  }
  for (let size = 2; size <= n; size *= 2) {
    const half = size / 2;
    for (let k = 0; k < half; k++) {
      const angle = (-2 * Math.PI * k) / size;
      const [cosine, sine] = [Math.cos(angle), Math.sin(angle)];
      for (let at = k; at < n; at += size) {
        const other = at + half;
        const re = real[other] * cosine - imaginary[other] * sine;
        const im = real[other] * sine + imaginary[other] * cosine;
        real[other] = real[at] - re;
        imaginary[other] = imaginary[at] - im;
        real[at] += re;
        imaginary[at] += im;
      }
    }
  }
}

/** {levels, highs, columns, rows} of a signal: levels as those of an AnalyserNode from -95 to -25 dB, up to `highest` Hz. */
export function stillOf(signal, rate, highest, { columns = 320, rows = 96, size = 1024 } = {}) {
  const levels = new Uint8Array(columns * rows);
  const highs = new Uint8Array(columns);
  const [real, imaginary] = [new Float64Array(size), new Float64Array(size)];
  const window = Float64Array.from({ length: size }, (_, i) => {
    const angle = (2 * Math.PI * i) / size;
    return 0.42 - 0.5 * Math.cos(angle) + 0.08 * Math.cos(2 * angle);
  });
  const bins = (highest / rate) * size;
  for (let column = 0; column < columns; column++) {
    const start = Math.floor((column * (signal.length - size)) / (columns - 1));
    for (let i = 0; i < size; i++) real[i] = signal[start + i] * window[i];
    imaginary.fill(0);
    transform(real, imaginary);
    for (let row = 0; row < rows; row++) {
      const bin = Math.floor((row * bins) / rows);
      const decibels = 20 * Math.log10(Math.max(Math.hypot(real[bin], imaginary[bin]) / size, 1e-9));
      levels[column * rows + row] = Math.max(0, Math.min(255, (255 * (decibels + 95)) / 70));
    }
    let high = 0;
    const end = Math.floor(((column + 1) * signal.length) / columns);
    for (let i = Math.floor((column * signal.length) / columns); i < end; i++) high = Math.max(high, Math.abs(signal[i]));
    highs[column] = 255 * Math.min(high, 1);
  }
  return { levels, highs, columns, rows };
}
