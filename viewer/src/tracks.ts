/**
 * The timeline as tracks: one per chip, its slices in rows that do not overlap.
 *
 * In: the slices of a report. Out: `Track`s whose slices are found by time without
 * looking at all of them, so a million slices draw as fast as a thousand.
 */

import type { Slice } from "./data";
import { lowerBound, type TimeScale, type TimeSpan } from "./scale";

/** Slices that do not overlap, by start; `starts` and `ends` both ascend. */
export interface TrackRow {
  readonly slices: readonly Slice[];
  readonly starts: Float64Array;
  readonly ends: Float64Array;
}

export interface Track {
  readonly chip: number;
  readonly rows: readonly TrackRow[];
}

/** The tracks of all chips that have slices, by chip. */
export function buildTracks(slices: readonly Slice[]): Track[] {
  const byChip = new Map<number, Slice[]>();
  for (const slice of slices) {
    const own = byChip.get(slice.chip);
    if (own) own.push(slice);
    else byChip.set(slice.chip, [slice]);
  }
  return [...byChip]
    .sort(([a], [b]) => a - b)
    .map(([chip, own]) => ({ chip, rows: stackRows(own) }));
}

/** Puts each slice into the first row that is free when it starts. */
function stackRows(slices: Slice[]): TrackRow[] {
  const sorted = slices.sort((a, b) => a.start - b.start || b.end - a.end);
  const rows: { slices: Slice[]; end: number }[] = [];
  for (const slice of sorted) {
    const row = rows.find(({ end }) => end <= slice.start);
    if (row) {
      row.slices.push(slice);
      row.end = slice.end;
    } else rows.push({ slices: [slice], end: slice.end });
  }
  return rows.map(({ slices: own }) => ({
    slices: own,
    starts: Float64Array.from(own, (slice) => slice.start),
    ends: Float64Array.from(own, (slice) => slice.end),
  }));
}

/** From the first start to the last end. */
export function wholeSpan(slices: readonly Slice[]): TimeSpan {
  let start = Number.POSITIVE_INFINITY;
  let end = Number.NEGATIVE_INFINITY;
  for (const slice of slices) {
    start = Math.min(start, slice.start);
    end = Math.max(end, slice.end);
  }
  return { start, end: Math.max(end, start + 1) };
}

/**
 * Calls `draw` for the slices in sight with their pixels. Slices thinner than a pixel
 * are skipped up to the next pixel, so the work depends on the width alone.
 */
export function visitVisible(
  row: TrackRow,
  scale: TimeScale,
  draw: (slice: Slice, left: number, width: number) => void,
): void {
  const count = row.slices.length;
  let index = lowerBound(row.ends, scale.span.start);
  while (index < count && (row.starts[index] as number) <= scale.span.end) {
    const left = scale.toPixels(row.starts[index] as number);
    const right = scale.toPixels(row.ends[index] as number);
    draw(row.slices[index] as Slice, left, Math.max(1, right - left));
    const next = index + 1;
    if (right - left >= 1) index = next;
    else index = Math.max(next, lowerBound(row.ends, scale.toTime(left + 1)));
  }
}

/** The slice of a row at a time, or the nearest one within `reach`. */
export function findSlice(row: TrackRow, time: number, reach: number): Slice | null {
  const index = lowerBound(row.ends, time - reach);
  const slice = row.slices[index];
  return slice && slice.start <= time + reach ? slice : null;
}
