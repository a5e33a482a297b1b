/** The mean of the last values. */
export class Average {
  #values = [];
  #most;

  constructor(most) {
    this.#most = most;
  }

  add(value) {
    this.#values.push(value);
    if (this.#values.length > this.#most) this.#values.shift();
    return this.#values.reduce((a, b) => a + b) / this.#values.length;
  }
}
