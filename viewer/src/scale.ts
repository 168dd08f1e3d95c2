/**
 * Conversions between values and pixels.
 *
 * `TimeScale` is the only place where time becomes pixels and back; pan and zoom
 * are new scales made from old ones.
 */

/** A stretch of time, in cycles. */
export interface TimeSpan {
  readonly start: number;
  readonly end: number;
}

/** Maps the time span `span` onto the pixels `left` to `left + width`. */
export class TimeScale {
  constructor(
    readonly span: TimeSpan,
    readonly left: number,
    readonly width: number,
  ) {
    if (!(span.end > span.start)) throw new RangeError("a TimeScale needs a duration");
  }

  get duration(): number {
    return this.span.end - this.span.start;
  }

  toPixels(time: number): number {
    return this.left + ((time - this.span.start) / this.duration) * this.width;
  }

  toTime(pixels: number): number {
    return this.span.start + ((pixels - this.left) / this.width) * this.duration;
  }

  /** The same pixels over another span. */
  withSpan(span: TimeSpan): TimeScale {
    return new TimeScale(span, this.left, this.width);
  }

  /** The same span over other pixels. */
  withPixels(left: number, width: number): TimeScale {
    return new TimeScale(this.span, left, width);
  }

  /** Zoomed by `factor` (above 1: closer); the time under `pixels` stays there. */
  zoomed(factor: number, pixels: number): TimeScale {
    const fixed = this.toTime(pixels);
    const start = fixed - (fixed - this.span.start) / factor;
    return this.withSpan({ start, end: start + this.duration / factor });
  }

  /** Moved so that what was at pixel `p` is at `p + pixels`. */
  panned(pixels: number): TimeScale {
    const shift = (-pixels / this.width) * this.duration;
    return this.withSpan({
      start: this.span.start + shift,
      end: this.span.end + shift,
    });
  }

  /** Kept inside `bounds` and no shorter than `shortest`. */
  clamped(bounds: TimeSpan, shortest: number): TimeScale {
    const whole = bounds.end - bounds.start;
    const duration = Math.min(Math.max(this.duration, shortest), whole);
    const latest = bounds.end - duration;
    const start = Math.min(Math.max(this.span.start, bounds.start), latest);
    return this.withSpan({ start, end: start + duration });
  }

  /** The distance of ticks: round in `unit`, at least `spacing` pixels. */
  tickStep(spacing: number, unit: number): number {
    return niceStep(((spacing / this.width) * this.duration) / unit) * unit;
  }

  /** The multiples of `step` inside the span. */
  ticks(step: number): number[] {
    const first = Math.ceil(this.span.start / step);
    const last = Math.floor(this.span.end / step);
    return Array.from({ length: last - first + 1 }, (_, i) => (first + i) * step);
  }
}

/** The smallest of 1, 2, 5, 10, 20, ... that is not below `atLeast`. */
export function niceStep(atLeast: number): number {
  const power = 10 ** Math.floor(Math.log10(atLeast));
  const factor = [1, 2, 5].find((f) => f * power >= atLeast * (1 - 1e-9)) ?? 10;
  return factor * power;
}

/** The first index whose value is not below `limit`; `values` ascend. */
export function lowerBound(values: ArrayLike<number>, limit: number): number {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((values[middle] as number) < limit) low = middle + 1;
    else high = middle;
  }
  return low;
}
