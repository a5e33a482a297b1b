// How much of the time of the audio thread is used, and whether it came too late.
//
// Engines give the audio thread no clock but Date.now, whose step of 1 ms is longer than most quanta take, and quanta may always
// begin at the same place of a step, so that an average does not help. Now and then a quantum is therefore begun when the clock
// has just moved; behind it the readings until it moves again say how much of the step is left.

const WINDOW = 1000; // ms, over which the audio clock is compared with the other one
const SAMPLE_EVERY = 31; // quanta; odd, so that plans whose frames are longer than a quantum are met in all their phases
const SAMPLES = 8;
const LEAST_BUDGET = 4; // ms; below it, three more steps of the clock could be too much
const MOST_READINGS = 1e5;
const TURNS = 3000;

const hasFineClock = typeof globalThis.performance?.now === "function";
const clock = hasFineClock ? () => performance.now() : () => Date.now();

let spun = 0;

/** A few microseconds, when it is compiled. */
function spin() {
  let number = spun;
  for (let i = 0; i < TURNS; i++) number = Math.imul(number + i, 5) & 0xffff;
  spun = number;
}

/** How often Date.now can be read until it moves. Engines allocate a number for each reading, so there is a pause between them. */
function readingsUntilTick() {
  const now = Date.now();
  let readings = 0;
  while (Date.now() === now && readings < MOST_READINGS) {
    spin();
    readings++;
  }
  return readings;
}

export class Load {
  /** What is posted: the object is always the same. */
  report = {
    type: "load", quanta: 0, ms: 0, worst: 0, budget: 0, load: 0, overruns: 0, missed: 0, restarts: 0,
  };
  #rate;
  #isPlayed;
  #budget = 0;
  #began = 0;
  #busy = 0;
  #quanta = 0;
  #worst = 0;
  #untilSample = SAMPLE_EVERY;
  #readingsInTick = 0; // while a quantum is a sample, otherwise 0
  #samples = new Float64Array(SAMPLES);
  #sampled = 0;
  #origin = null; // of both clocks
  #windowEnd = 0;
  #lag = Infinity; // the least in this window
  #lastLag = null;

  /** Missed quanta are only counted where audio is played as it is made. */
  constructor(rate, isPlayed) {
    this.#rate = rate;
    this.#isPlayed = isPlayed;
  }

  begin(frame, block) {
    this.#budget = (block / this.#rate) * 1000;
    if (this.#isPlayed && !hasFineClock && --this.#untilSample <= 0) this.#beginSample();
    this.#began = clock();
    if (this.#isPlayed) this.#compare((frame / this.#rate) * 1000);
  }

  end() {
    let ms = clock() - this.#began;
    if (this.#readingsInTick) ms = this.#endSample(ms);
    this.#busy += ms;
    this.#quanta++;
    if (ms > this.#worst) this.#worst = ms;
    if (ms > this.#budget) this.report.overruns++;
  }

  #beginSample() {
    this.#untilSample = SAMPLE_EVERY;
    if (this.#budget < LEAST_BUDGET || 4 * this.#mean() > this.#budget) {
      this.#sampled = 0; // quanta that are this long can be timed with the clock as it is
      return;
    }
    readingsUntilTick();
    this.#readingsInTick = readingsUntilTick();
  }

  #endSample(ticks) {
    const ms = Math.max(0, ticks + 1 - readingsUntilTick() / this.#readingsInTick);
    this.#readingsInTick = 0;
    this.#samples[this.#sampled++ % SAMPLES] = ms;
    return ms;
  }

  #mean() {
    const count = Math.min(this.#sampled, SAMPLES);
    let sum = 0;
    for (let i = 0; i < count; i++) sum += this.#samples[i];
    return count ? sum / count : this.#busy / Math.max(this.#quanta, 1);
  }

  /** The context was suspended, or the audio device has changed. */
  rebase() {
    this.#origin = null;
  }

  /**
   * A quantum that does not come in time is not made up for: the audio clock stays behind from then on. Quanta come in
   * bursts, so it is the least lag of a second that counts.
   */
  #compare(audio) {
    if (this.#origin === null) {
      this.#origin = this.#began - audio;
      this.#windowEnd = this.#began + WINDOW;
      this.#lag = Infinity;
      this.#lastLag = null;
    }
    const lag = this.#began - audio - this.#origin;
    if (this.#began >= this.#windowEnd) {
      if (this.#lastLag !== null) {
        const behind = Math.round((this.#lag - this.#lastLag) / this.#budget);
        if (behind > 0) this.report.missed += behind;
      }
      this.#lastLag = this.#lag;
      this.#lag = Infinity;
      this.#windowEnd += WINDOW;
    }
    if (lag < this.#lag) this.#lag = lag;
  }

  /** The report since the last one; overruns, missed quanta and restarts are counted from the start. */
  take() {
    const report = this.report;
    report.quanta = this.#quanta;
    report.ms = this.#mean();
    report.worst = this.#worst;
    report.budget = this.#budget;
    report.load = report.ms / this.#budget;
    this.#quanta = this.#busy = this.#worst = 0;
    return report;
  }
}
