/**
 * Sums by context over the executions of a group, with a list of pending additions and removals.
 */

import { emptySums } from './sums';

/** Flags of an execution: its times are in the sums; it is in the list. */
const APPLIED = 1;
const WAITS = 2;

/** Executions between two looks at the clock. */
const PIECE = 128;

export class Tally {
  readonly sums: Float64Array;
  /** Number of executions in the sums. */
  applied = 0;
  private readonly state: Uint8Array;
  private readonly waiting: Uint32Array;
  private count = 0;

  constructor(
    contexts: number,
    executions: number,
    /** Adds an execution's times to the sums, or removes them (-1). */
    private readonly add: (sums: Float64Array, execution: number, sign: number) => void,
  ) {
    this.sums = emptySums(contexts);
    this.state = new Uint8Array(executions);
    this.waiting = new Uint32Array(executions);
  }

  get behind(): number {
    return this.count;
  }

  wait(one: number): void {
    if (this.state[one] & WAITS) return;
    this.state[one] |= WAITS;
    this.waiting[this.count++] = one;
  }

  /** Starts from 0: all members wait. */
  restart(fails: Uint32Array): void {
    this.sums.fill(0);
    this.applied = 0;
    this.count = 0;
    const { state, waiting } = this;
    for (let one = 0; one < fails.length; one++) {
      if (fails[one] === 0) {
        state[one] = WAITS;
        waiting[this.count++] = one;
      } else state[one] = 0;
    }
  }

  /** Starts with the sums of all executions, which are all members. */
  begin(sums: Float64Array): void {
    this.sums.set(sums);
    this.state.fill(APPLIED);
    this.count = 0;
    this.applied = this.state.length;
  }

  /** Copies the state of another tally. */
  copy(like: Tally): void {
    this.sums.set(like.sums);
    this.state.set(like.state);
    this.waiting.set(like.waiting);
    this.count = like.count;
    this.applied = like.applied;
  }

  /** Starts from the sums of all executions: those that are not members wait for their removal. */
  private subtract(all: Tally, fails: Uint32Array): void {
    this.sums.set(all.sums);
    this.applied = all.applied;
    this.count = 0;
    const { state, waiting } = this;
    for (let one = 0; one < fails.length; one++) {
      state[one] = APPLIED;
      if (fails[one] !== 0) {
        state[one] |= WAITS;
        waiting[this.count++] = one;
      }
    }
  }

  /**
   * Processes the list until a time. Starts from the current sums, from 0 or from the sums of all
   * executions, whichever is the least work. Returns whether the list is empty.
   */
  settle(
    fails: Uint32Array,
    size: number,
    all: Tally | null,
    deadline: number,
    now: () => number = () => performance.now(),
  ): boolean {
    const without = fails.length - size;
    if (this.count > 4096) {
      const isAllKnown = all !== null && all.count === 0;
      if (isAllKnown && without * 2 < this.count && without <= size) this.subtract(all, fails);
      else if (size * 2 < this.count) this.restart(fails);
    }
    const { sums, state, waiting } = this;
    while (this.count > 0) {
      const until = Math.max(0, this.count - PIECE);
      for (let at = this.count - 1; at >= until; at--) {
        const one = waiting[at];
        const isIn = fails[one] === 0;
        const wasIn = (state[one] & APPLIED) !== 0;
        state[one] = isIn ? APPLIED : 0;
        if (isIn === wasIn) continue;
        const sign = isIn ? 1 : -1;
        this.add(sums, one, sign);
        this.applied += sign;
      }
      this.count = until;
      if (until > 0 && now() > deadline) return false;
    }
    return true;
  }
}
