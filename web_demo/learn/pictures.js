// What the part draws: a pad for paths, small pictures of them, and the curve of the loss.

import { canvas, colour } from "../page/plots.js";

function trace(context, points, width, height) {
  context.strokeStyle = colour("accent");
  context.lineJoin = context.lineCap = "round";
  context.beginPath();
  for (const { x, y } of points) context.lineTo(x * width, y * height);
  context.stroke();
}

/** A square that a path is drawn on, by a mouse, a pen or a finger; `done(points)` gets it. */
export class Pad {
  #points = [];
  #pointer = null; // the one that draws
  #draw = () => {};

  constructor(label, done) {
    this.element = canvas(label, (context, width, height) => {
      this.#draw = () => {
        context.clearRect(0, 0, width, height);
        context.lineWidth = 4;
        trace(context, this.#points, width, height);
      };
      this.#draw();
    });
    this.element.classList.add("learn-pad");
    this.element.addEventListener("pointerdown", (event) => {
      if (this.#pointer !== null) return;
      this.#pointer = event.pointerId;
      this.element.setPointerCapture(event.pointerId);
      this.show([this.#at(event)]);
    });
    this.element.addEventListener("pointermove", (event) => {
      if (event.pointerId === this.#pointer) this.show([...this.#points, this.#at(event)]);
    });
    const end = (event) => {
      if (event.pointerId !== this.#pointer) return;
      this.#pointer = null;
      if (event.type === "pointerup") done(this.#points);
    };
    for (const type of ["pointerup", "pointercancel"]) this.element.addEventListener(type, end);
  }

  #at({ clientX, clientY }) {
    const { left, top, width, height } = this.element.getBoundingClientRect();
    return { x: (clientX - left) / width, y: (clientY - top) / height };
  }

  show(points) {
    this.#points = points;
    this.#draw();
  }
}

export const thumbnail = (points, label) =>
  canvas(`An example: ${label.toLowerCase()}`, (context, width, height) => {
    context.lineWidth = 1.75;
    trace(context, points, width, height);
  });

/** Losses from the left to the right, from 0 upwards. */
export class LossCurve {
  #values = [];
  #draw = () => {};

  constructor(label) {
    this.element = canvas(label, (context, width, height) => {
      this.#draw = () => {
        context.clearRect(0, 0, width, height);
        context.strokeStyle = colour("line");
        context.lineWidth = 1;
        context.strokeRect(0.5, 0.5, width - 1, height - 1);
        if (this.#values.length < 2) return;
        const most = Math.max(...this.#values);
        const points = this.#values.map((value, i) => ({ x: i / (this.#values.length - 1), y: 0.95 - (0.9 * value) / most }));
        context.lineWidth = 1.75;
        trace(context, points, width, height);
      };
      this.#draw();
    });
  }

  show(values) {
    this.#values = values;
    this.#draw();
  }
}
