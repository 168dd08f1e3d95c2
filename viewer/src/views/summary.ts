/**
 * Summary: does it fit, how full is each chip, what costs most, and the figures the
 * report wants read first. In: summary, memory, times, operations, notes.
 */

import type { Operation, SummaryGroup, ViewData } from "../data";
import { h } from "../element";
import { formatBytes, formatCompact, formatCount, formatShare } from "../format";
import { phaseVariable } from "../theme";
import { chipFills, type ChipFill } from "../tiles";
import type { View } from "../view";
import { card, swatch } from "../widgets/controls";
import { chipTimesCard } from "./chip_times";

const NUM_COSTLIEST = 5;

export const summary: View = {
  id: "summary",
  title: "Summary",
  emptyReason: () => null,
  mount(host, { data }) {
    host.append(
      verdict(data),
      h(
        "div",
        { class: "cards" },
        ...data.summary.map(groupCard),
        chipTimesCard(data.chip_times),
        costliest(data),
        notes(data.notes),
      ),
    );
    return () => undefined;
  },
};

/** The band on top: the answer in two words, and the reason for it. */
function verdict(data: ViewData): HTMLElement {
  const fills = chipFills(data);
  const capacity = data.memory.capacity_bytes;
  const fullest = fills.reduce<ChipFill | null>(
    (best, fill) => (best && best.peakBytes >= fill.peakBytes ? best : fill),
    null,
  );
  if (!fullest || capacity <= 0) {
    return h(
      "section",
      { class: "verdict", "data-fits": "unknown" },
      h(
        "div",
        { class: "verdict-text" },
        h("p", { class: "verdict-word" }, "No memory recorded"),
        h(
          "p",
          { class: "verdict-why" },
          "Without the memory of every tile, nothing says whether the program fits.",
        ),
      ),
    );
  }
  const fits = fullest.peakBytes <= capacity;
  return h(
    "section",
    { class: "verdict", "data-fits": String(fits) },
    h(
      "div",
      { class: "verdict-text" },
      h("p", { class: "verdict-word" }, fits ? "Fits" : "Does not fit"),
      h("p", { class: "verdict-why" }, verdictReason(fullest, capacity)),
    ),
    h(
      "div",
      { class: "fills", style: `--columns: ${fillColumns(fills.length)}` },
      ...fills.map((fill) => fillMeter(fill, capacity)),
      fillKey(),
    ),
  );
}

function verdictReason(fullest: ChipFill, capacity: number): string {
  const tile = `Tile ${formatCount(fullest.peakTile)} on IPU ${fullest.chip}`;
  const rest = capacity - fullest.peakBytes;
  const needs = `${formatBytes(fullest.peakBytes)} of ${formatBytes(capacity)}`;
  return rest >= 0
    ? `${tile} is the fullest: ${needs}, ${formatBytes(rest)} free.`
    : `${tile} needs ${needs}, ${formatBytes(-rest)} too much.`;
}

/** One chip: a bar to the fullest tile, a tick at the average tile. */
function fillMeter(fill: ChipFill, capacity: number): HTMLElement {
  // Over-full chips share one scale: the bar then ends at what is needed.
  const whole = Math.max(capacity, fill.peakBytes);
  const percent = (bytes: number): string => `${((100 * bytes) / whole).toFixed(2)}%`;
  const over = fill.peakBytes > capacity;
  const [peak, mean] = [formatBytes(fill.peakBytes), formatBytes(fill.meanBytes)];
  const text = `${peak} on the fullest tile, ${mean} on average`;
  return h(
    "a",
    {
      class: "fill",
      href: `#memory?chip=${fill.chip}`,
      title: text,
      "data-over": String(over),
    },
    h("span", { class: "fill-name" }, `IPU ${fill.chip}`),
    h(
      "span",
      { class: "fill-track" },
      h("i", {
        class: "fill-bar",
        style: `width: ${percent(Math.min(capacity, fill.peakBytes))}`,
      }),
      over && h("i", { class: "fill-over", style: `left: ${percent(capacity)}` }),
      h("i", { class: "fill-mean", style: `left: ${percent(fill.meanBytes)}` }),
    ),
    h("span", { class: "fill-value" }, formatShare(fill.peakBytes / capacity)),
  );
}

/** Many chips stand in more columns, so that the band stays a band. */
function fillColumns(numChips: number): number {
  return numChips === 1 ? 1 : numChips <= 16 ? 2 : 4;
}

function fillKey(): HTMLElement {
  return h(
    "p",
    { class: "fills-key" },
    h("span", {}, h("i", { class: "key-bar" }), "fullest tile"),
    h("span", {}, h("i", { class: "key-mean" }), "average tile"),
  );
}

function groupCard({ group, rows }: SummaryGroup): HTMLElement {
  const pairs = rows.flatMap(([label, value]) => [
    h("dt", {}, label),
    h("dd", {}, value),
  ]);
  return card(group, null, h("dl", { class: "facts" }, ...pairs));
}

function costliest(data: ViewData): HTMLElement {
  const top = [...data.operations]
    .sort((a, b) => b.cycles - a.cycles)
    .slice(0, NUM_COSTLIEST);
  const all = h("a", { class: "more", href: "#operations" }, "All operations");
  if (top.length === 0) {
    return card(
      "Costliest operations",
      null,
      h("p", { class: "quiet" }, "No operation was recorded."),
    );
  }
  return card(
    "Costliest operations",
    all,
    h("ol", { class: "costliest" }, ...top.map(costlyRow)),
  );
}

function costlyRow(operation: Operation): HTMLElement {
  const query = new URLSearchParams({ text: operation.name });
  const title = `${operation.name}: ${formatCompact(operation.cycles)} cycles`;
  return h(
    "li",
    {},
    h(
      "a",
      { href: `#operations?${query}`, title },
      swatch(phaseVariable(operation.phase)),
      h("span", { class: "name" }, operation.name),
      h("span", { class: "number" }, formatShare(operation.share)),
    ),
  );
}

function notes(texts: readonly string[]): HTMLElement {
  if (texts.length === 0) {
    return card("Notes", null, h("p", { class: "quiet" }, "Nothing to note."));
  }
  const items = texts.map((text) => h("li", {}, text));
  return card("Notes", null, h("ul", { class: "notes" }, ...items));
}
