/** The card of time by class: one bar for each chip, whose pieces are the whole run. */

import { h } from "../element";
import { formatShare } from "../format";
import { card, filled, swatch } from "../widgets/controls";

type Times = Readonly<Record<string, number>>;

/** Nothing where no time is known, as in genuine reports. */
export function chipTimesCard(times: readonly Times[]): HTMLElement | null {
  if (times.length === 0) return null;
  const names = Object.keys(times[0] as Times);
  const all = names.map((name) => times.reduce((sum, chip) => sum + (chip[name] ?? 0), 0));
  const whole = all.reduce((sum, cycles) => sum + cycles, 0) || 1;
  const legend = names.map((name, index) =>
    h(
      "div",
      { class: "split-row" },
      swatch(colorOf(name)),
      h("span", { class: "name" }, name),
      h("span", { class: "number quiet" }, formatShare((all[index] ?? 0) / whole)),
    ),
  );
  const bars = times.map((chip, index) => chipBar(index, chip, names));
  return card("Where the time goes", null, h("div", { class: "split" }, ...bars, ...legend));
}

function chipBar(index: number, chip: Times, names: readonly string[]): HTMLElement {
  const whole = names.reduce((sum, name) => sum + (chip[name] ?? 0), 0) || 1;
  const share = (name: string): number => (chip[name] ?? 0) / whole;
  const pieces = names.map((name) => filled(share(name), colorOf(name)));
  const title = names.map((name) => `${name} ${formatShare(share(name))}`).join(", ");
  return h(
    "div",
    { class: "chip-time", title },
    h("span", { class: "quiet" }, `IPU ${index}`),
    h("div", { class: "split-bar" }, ...pieces),
  );
}

function colorOf(name: string): string {
  return `--part-${name}`;
}
