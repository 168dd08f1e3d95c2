/**
 * Per-tile figures: run-length coded data opened into arrays, and what follows from
 * them. In: `Memory` and `Target`. Out: arrays with one number a tile, peaks, sums.
 */

import type { Memory, Runs, Target, ViewData } from "./data";

/** One number a tile, for the tiles `first` and on. */
export function expandRuns(runs: Runs): Float64Array {
  const length = runs.reduce((sum, [count]) => sum + count, 0);
  const values = new Float64Array(length);
  let next = 0;
  for (const [count, value] of runs) {
    values.fill(value, next, next + count);
    next += count;
  }
  return values;
}

/** Which tiles a chip owns; `null` stands for all chips. */
export function tileRange(target: Target, chip: number | null): [number, number] {
  if (chip === null) return [0, target.num_tiles];
  const first = chip * target.tiles_per_chip;
  return [first, Math.min(first + target.tiles_per_chip, target.num_tiles)];
}

export function sum(values: ArrayLike<number>): number {
  let total = 0;
  for (let i = 0; i < values.length; i += 1) total += values[i] as number;
  return total;
}

/** The index of the largest value, the first of equals; -1 for none. */
export function argMax(values: ArrayLike<number>): number {
  let best = values.length > 0 ? 0 : -1;
  for (let i = 1; i < values.length; i += 1) {
    if ((values[i] as number) > (values[best] as number)) best = i;
  }
  return best;
}

/** How full one chip is: its fullest tile and its average tile. */
export interface ChipFill {
  readonly chip: number;
  readonly peakTile: number;
  readonly peakBytes: number;
  readonly meanBytes: number;
}

/** The fill of every chip, by what each tile needs including gaps. */
export function chipFills(data: ViewData): ChipFill[] {
  const needed = expandRuns(data.memory.series.total_including_gaps);
  if (needed.length === 0) return [];
  return Array.from({ length: data.target.num_chips }, (_, chip) => {
    const [first, last] = tileRange(data.target, chip);
    const values = needed.subarray(first, last);
    const peak = argMax(values);
    const peakBytes = values[peak] ?? 0;
    const meanBytes = sum(values) / Math.max(1, values.length);
    return { chip, peakTile: first + peak, peakBytes, meanBytes };
  });
}

/** A named set of per-tile values. */
export interface TileLayer {
  readonly key: string;
  readonly values: Float64Array;
}

/** All memory categories that hold a byte on some tile, the largest first. */
export function categoryLayers(memory: Memory): TileLayer[] {
  return Object.entries(memory.categories)
    .map(([key, runs]) => ({ key, values: expandRuns(runs), total: totalOf(runs) }))
    .filter((layer) => layer.total > 0)
    .sort((a, b) => b.total - a.total)
    .map(({ key, values }) => ({ key, values }));
}

function totalOf(runs: Runs): number {
  return runs.reduce((total, [count, value]) => total + count * value, 0);
}
