/** The table beside the tile map: bytes of each category over some tiles. */

import { h } from "../element";
import { formatBytes, formatLabel, formatShare } from "../format";
import { categoryVariable } from "../theme";
import { sum, type TileLayer } from "../tiles";
import { bar, swatch } from "../widgets/controls";
import type { TileRange } from "./memory_counters";

export function breakdown(
  categories: readonly TileLayer[],
  [first, last]: TileRange,
): HTMLElement[] {
  const sums = categories.map(({ values }) => sum(values.subarray(first, last)));
  const whole = sum(sums);
  const rows = categories.map(({ key }, index) => {
    const bytes = sums[index] as number;
    return row(formatLabel(key), categoryVariable(index), bytes, bytes / (whole || 1));
  });
  return [...rows, totalRow(whole)];
}

function row(label: string, color: string, bytes: number, share: number): HTMLElement {
  return h(
    "div",
    { class: "breakdown-row" },
    swatch(color),
    h("span", { class: "name" }, label),
    bar(share, color),
    h("span", { class: "number" }, formatBytes(bytes)),
    h("span", { class: "number quiet" }, formatShare(share)),
  );
}

function totalRow(bytes: number): HTMLElement {
  return h(
    "div",
    { class: "breakdown-row breakdown-total" },
    h("span"),
    h("span", { class: "name" }, "Total"),
    h("span"),
    h("span", { class: "number" }, formatBytes(bytes)),
    h("span"),
  );
}
