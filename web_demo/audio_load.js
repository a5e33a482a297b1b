// How much of the time of the audio thread is used, and whether it came too late.

/** Where there is no finer clock, Date.now: too coarse for one quantum, but right on average over many. */
const clock = globalThis.performance?.now ? () => performance.now() : () => Date.now();

const WINDOW = 1000; // ms, over which the audio clock is compared with the other one

export class Load {
  /** What is posted: the object is always the same. */
  report = {
    type: "load", quanta: 0, ms: 0, worst: 0, budget: 0, load: 0, overruns: 0, missed: 0, restarts: 0,
    finest: globalThis.performance?.now ? 0 : 1,
  };
  #rate;
  #budget;
  #began = 0;
  #busy = 0;
  #quanta = 0;
  #worst = 0;
  #origin = null; // of both clocks
  #windowEnd = 0;
  #lag = Infinity; // the least in this window
  #lastLag = null;

  /** `quanta` missed are only counted where audio is played as it is made. */
  constructor(rate, isPlayed) {
    this.#rate = rate;
    this.isPlayed = isPlayed;
  }

  begin(frame, block) {
    this.#budget = (block / this.#rate) * 1000;
    this.#began = clock();
    if (this.isPlayed) this.#compare((frame / this.#rate) * 1000);
  }

  end() {
    const ms = clock() - this.#began;
    this.#busy += ms;
    this.#quanta++;
    if (ms > this.#worst) this.#worst = ms;
    if (ms > this.#budget) this.report.overruns++;
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

  /** The report of what was since the last one; overruns, missed quanta and restarts are counted from the start. */
  take() {
    const report = this.report;
    report.quanta = this.#quanta;
    report.ms = this.#busy / Math.max(this.#quanta, 1);
    report.worst = this.#worst;
    report.budget = this.#budget;
    report.load = report.ms / this.#budget;
    this.#quanta = this.#busy = this.#worst = 0;
    return report;
  }
}
