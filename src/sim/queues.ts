/** The two queues of a replica: who waits, in order; and who finishes at which step. */

/** Slots in order of service, with room at the front for those preempted. A ring. */
export class WaitQueue {
  #ring = new Int32Array(64);
  #head = 0;
  #size = 0;

  get size(): number {
    return this.#size;
  }
  /** The next to be served. Ask only when there is one. */
  get head(): number {
    return this.#ring[this.#head]!;
  }
  push(slot: number): void {
    this.#fit();
    this.#ring[(this.#head + this.#size++) & (this.#ring.length - 1)] = slot;
  }
  pushFront(slot: number): void {
    this.#fit();
    this.#head = (this.#head - 1) & (this.#ring.length - 1);
    this.#ring[this.#head] = slot;
    this.#size++;
  }
  pop(): number {
    const slot = this.head;
    this.#head = (this.#head + 1) & (this.#ring.length - 1);
    this.#size--;
    return slot;
  }
  #fit(): void {
    const n = this.#ring.length;
    if (this.#size < n) return;
    const next = new Int32Array(2 * n);
    for (let i = 0; i < n; i++) next[i] = this.#ring[(this.#head + i) & (n - 1)]!;
    this.#ring = next;
    this.#head = 0;
  }
}

/** A binary min-heap of (step, slot). Stale entries are the owner's to recognise. */
export class StepHeap {
  #keys = new Float64Array(64);
  #slots = new Int32Array(64);
  #size = 0;

  get size(): number {
    return this.#size;
  }
  get minStep(): number {
    return this.#size > 0 ? this.#keys[0]! : Number.POSITIVE_INFINITY;
  }
  get minSlot(): number {
    return this.#slots[0]!;
  }

  push(step: number, slot: number): void {
    if (this.#size === this.#keys.length) this.#grow();
    const keys = this.#keys;
    const slots = this.#slots;
    let i = this.#size++;
    while (i > 0) {
      const parent = (i - 1) >> 1;
      if (keys[parent]! <= step) break;
      keys[i] = keys[parent]!;
      slots[i] = slots[parent]!;
      i = parent;
    }
    keys[i] = step;
    slots[i] = slot;
  }

  pop(): void {
    const keys = this.#keys;
    const slots = this.#slots;
    const n = --this.#size;
    const key = keys[n]!;
    const slot = slots[n]!;
    let i = 0;
    for (;;) {
      let child = 2 * i + 1;
      if (child >= n) break;
      if (child + 1 < n && keys[child + 1]! < keys[child]!) child++;
      if (key <= keys[child]!) break;
      keys[i] = keys[child]!;
      slots[i] = slots[child]!;
      i = child;
    }
    keys[i] = key;
    slots[i] = slot;
  }

  #grow(): void {
    const keys = new Float64Array(2 * this.#keys.length);
    keys.set(this.#keys);
    this.#keys = keys;
    const slots = new Int32Array(2 * this.#slots.length);
    slots.set(this.#slots);
    this.#slots = slots;
  }
}
