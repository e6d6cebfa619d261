/**
 * A run of alike steps in closed form. Between two changes of the batch every step is pure decode and its time linear in
 * ΣKV, which grows by one token a sequence and step: the m-th step ends at `start + m·a + b·m(m−1)/2`.
 */
import type { Millis } from '../base/units.ts';

export class StepRun {
  /** 0: nothing runs. */
  steps = 0;
  start: Millis = 0;
  end: Millis = 0;
  /** The first step's time, and its growth a step. */
  a: Millis = 0;
  b: Millis = 0;

  begin(start: Millis, a: Millis, b: Millis, steps: number): void {
    if (!(a > 0)) throw new Error(`internal: a step of ${a} ms`);
    this.start = start;
    this.a = a;
    this.b = b;
    this.until(steps);
  }

  /** Ends it after `steps` steps. */
  until(steps: number): void {
    this.steps = steps;
    this.end = this.endOf(steps);
  }

  endOf(step: number): Millis {
    return this.start + step * this.a + (this.b / 2) * step * (step - 1);
  }

  /** Steps that end at or before `t`. */
  by(t: Millis): number {
    const n = this.steps;
    if (n === 0) return 0;
    if (t >= this.end) return n;
    if (t < this.start + this.a) return 0;
    const dt = t - this.start;
    const p = this.a - this.b / 2;
    let i = Math.floor((2 * dt) / (p + Math.sqrt(p * p + 2 * this.b * dt)));
    // Rounding may put the root on the wrong side of a step's end.
    while (i > 0 && this.endOf(i) > t) i--;
    while (i < n && this.endOf(i + 1) <= t) i++;
    return i;
  }
}
