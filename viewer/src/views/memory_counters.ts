/**
 * The counters of the memory chart. In: per-tile values, which of them are hidden, and
 * a range of tiles. Out: what `Chart` draws, as totals or as a stack of categories.
 */

import type { SeriesName } from "../data";
import { formatLabel } from "../format";
import { categoryVariable } from "../theme";
import type { TileLayer } from "../tiles";
import type { Counter } from "../widgets/chart";

/** From one tile up to, not including, another. */
export type TileRange = readonly [first: number, last: number];

interface TotalLook {
  readonly key: SeriesName;
  readonly label: string;
  readonly color: string;
  readonly fill: number;
}

export const TOTALS: readonly TotalLook[] = [
  {
    key: "total_including_gaps",
    label: "Total including gaps",
    color: "--series-gaps",
    fill: 0.14,
  },
  { key: "total", label: "Total", color: "--series-total", fill: 0.1 },
  { key: "always_live", label: "Always live", color: "--series-always", fill: 0.22 },
  {
    key: "transient_peak",
    label: "Transient at its peak",
    color: "--series-transient",
    fill: 0,
  },
];

export function totalCounters(
  series: ReadonlyMap<string, Float64Array>,
  hidden: ReadonlySet<string>,
  [first, last]: TileRange,
): Counter[] {
  return TOTALS.filter(({ key }) => !hidden.has(key)).map(({ key, ...look }) => {
    const values = (series.get(key) as Float64Array).subarray(first, last);
    return { ...look, values, width: 1.25 };
  });
}

/** A stack, topmost first: each counter holds the sum of itself and all below it. */
export function categoryCounters(
  categories: readonly TileLayer[],
  hidden: ReadonlySet<string>,
  [first, last]: TileRange,
): Counter[] {
  const height = new Float64Array(last - first);
  const counters = categories.flatMap(({ key, values }, index): Counter[] => {
    if (hidden.has(key)) return [];
    const shown = values.subarray(first, last);
    shown.forEach((value, i) => (height[i] = (height[i] as number) + value));
    const color = categoryVariable(index);
    const label = formatLabel(key);
    return [{ label, values: height.slice(), shown, color, fill: 0.82, width: 0 }];
  });
  return counters.reverse();
}
