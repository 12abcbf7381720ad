// How long to wait before the next attempt to connect.

const firstDelay = 500;
const longestDelay = 15_000;

export class Backoff {
  private attempts = 0;

  /** The next delay in milliseconds. Delays grow, and differ between browsers so that not all connect at once. */
  next(random = Math.random()): number {
    const delay = Math.min(longestDelay, firstDelay * 2 ** this.attempts);
    this.attempts += 1;
    return delay * (0.75 + random / 4);
  }

  reset(): void {
    this.attempts = 0;
  }
}
