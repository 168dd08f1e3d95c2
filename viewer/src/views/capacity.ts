/** The capacity as a line of a chart, and when it helps to see it. */

import type { Counter } from "../widgets/chart";

/** Below this share of the capacity, its line would flatten everything else. */
const NEAR_SHARE = 0.35;

export function isNearCapacity(peakBytes: number, capacityBytes: number): boolean {
  return peakBytes >= NEAR_SHARE * capacityBytes;
}

export function capacityLine(length: number, bytes: number): Counter {
  const values = new Float64Array(length).fill(bytes);
  return { label: "Capacity", values, color: "--bad", dash: [6, 4], width: 1.25 };
}
