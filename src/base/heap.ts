/** A binary min-heap over a numeric key; equal keys leave in the order they came (a stable queue of events). */
export class Heap<T> {
  #keys: number[] = [];
  #orders: number[] = [];
  #items: T[] = [];
  #next = 0;

  get size(): number {
    return this.#items.length;
  }

  /** The smallest key, or +∞ when empty. */
  get minKey(): number {
    return this.#keys[0] ?? Number.POSITIVE_INFINITY;
  }

  peek(): T | undefined {
    return this.#items[0];
  }

  push(key: number, item: T): void {
    let i = this.#items.length;
    const order = this.#next++;
    this.#keys.push(key);
    this.#orders.push(order);
    this.#items.push(item);
    while (i > 0) {
      const parent = (i - 1) >> 1;
      if (!this.#before(key, order, parent)) break;
      this.#move(parent, i);
      i = parent;
    }
    this.#put(i, key, order, item);
  }

  pop(): T | undefined {
    const top = this.#items[0];
    const key = this.#keys.pop();
    const order = this.#orders.pop();
    const item = this.#items.pop();
    const n = this.#items.length;
    if (n === 0 || key === undefined || order === undefined) return top;
    let i = 0;
    for (;;) {
      let child = 2 * i + 1;
      if (child >= n) break;
      if (child + 1 < n && this.#before(this.#keys[child + 1]!, this.#orders[child + 1]!, child)) child++;
      if (this.#before(key, order, child)) break;
      this.#move(child, i);
      i = child;
    }
    this.#put(i, key, order, item as T);
    return top;
  }

  #before(key: number, order: number, at: number): boolean {
    const other = this.#keys[at]!;
    return key < other || (key === other && order < this.#orders[at]!);
  }
  #move(from: number, to: number): void {
    this.#put(to, this.#keys[from]!, this.#orders[from]!, this.#items[from]!);
  }
  #put(i: number, key: number, order: number, item: T): void {
    this.#keys[i] = key;
    this.#orders[i] = order;
    this.#items[i] = item;
  }
}
