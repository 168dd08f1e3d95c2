/** Small controls shared by the views. In: choices and a callback. Out: elements. */

import { h } from "../element";

export interface Choice {
  readonly value: string;
  readonly label: string;
}

/** More choices than this become a drop-down list. */
const MAX_SEGMENTS = 6;

/** One of a few choices, all visible; keyboard behaviour is that of radio buttons. */
export function segmented(
  name: string,
  choices: readonly Choice[],
  selected: string,
  choose: (value: string) => void,
): HTMLElement {
  const group = `${name}-${Math.random().toString(36).slice(2)}`;
  const segments = choices.map(({ value, label }) =>
    h(
      "label",
      { class: "segment" },
      h("input", {
        type: "radio",
        name: group,
        value,
        checked: value === selected,
        on: { change: () => choose(value) },
      }),
      h("span", {}, label),
    ),
  );
  return h(
    "div",
    { class: "segmented", role: "radiogroup", "aria-label": name },
    ...segments,
  );
}

/** One of many choices, in a drop-down list. */
export function dropdown(
  name: string,
  choices: readonly Choice[],
  selected: string,
  choose: (value: string) => void,
): HTMLElement {
  const options = choices.map(({ value, label }) =>
    h("option", { value, selected: value === selected }, label),
  );
  const change = (event: Event): void =>
    choose((event.target as HTMLSelectElement).value);
  return h(
    "select",
    { class: "select", "aria-label": name, on: { change } },
    ...options,
  );
}

/** Segments for a few choices, a drop-down list for many. */
export function picker(
  name: string,
  choices: readonly Choice[],
  selected: string,
  choose: (value: string) => void,
): HTMLElement {
  const widget = choices.length > MAX_SEGMENTS ? dropdown : segmented;
  return widget(name, choices, selected, choose);
}

/** Choices for the chips given by number; the label beside them says what they are. */
export function chipChoices(chips: readonly number[]): Choice[] {
  return chips.map((chip) => ({ value: String(chip), label: String(chip) }));
}

/** A control with its name before it. */
export function labelled(label: string, control: HTMLElement): HTMLElement {
  return h(
    "div",
    { class: "control" },
    h("span", { class: "control-label" }, label),
    control,
  );
}

/** A small square of colour, for legends and tables. */
export function swatch(cssVariable: string): HTMLElement {
  return h("i", { class: "swatch", style: `background: var(${cssVariable})` });
}

/** A coloured piece that fills a share of its row. */
export function filled(share: number, cssVariable: string): HTMLElement {
  const width = `${(100 * share).toFixed(2)}%`;
  return h("i", { style: `width: ${width}; background: var(${cssVariable})` });
}

/** A bar filled to a share of its length. */
export function bar(share: number, cssVariable: string): HTMLElement {
  return h("span", { class: "bar" }, filled(share, cssVariable));
}

/** An entry of a legend that can be switched on and off. */
export function toggle(
  mark: HTMLElement,
  label: string,
  pressed: boolean,
  click: () => void,
): HTMLElement {
  const attributes = { type: "button", "aria-pressed": String(pressed), on: { click } };
  return h("button", { class: "legend-item", ...attributes }, mark, label);
}

/** A card with a heading and, beside it, what belongs to the heading. */
export function card(
  heading: string,
  aside: HTMLElement | null,
  ...children: readonly HTMLElement[]
): HTMLElement {
  return h(
    "section",
    { class: "card" },
    h("header", { class: "card-head" }, h("h2", {}, heading), aside),
    ...children,
  );
}
