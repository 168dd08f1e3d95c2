/** The one floating box of the page that says what is under the pointer. */

import { h, type Child } from "../element";

const OFFSET = 14;

export class Tooltip {
  private readonly box = h("div", { class: "tooltip", role: "status", hidden: true });

  constructor() {
    document.body.append(this.box);
  }

  /** Shows `children` beside a point of the window, inside the window. */
  show(clientX: number, clientY: number, ...children: readonly Child[]): void {
    this.box.replaceChildren(h("div", {}, ...children));
    this.box.hidden = false;
    const { width, height } = this.box.getBoundingClientRect();
    const right = clientX + OFFSET + width < window.innerWidth;
    const below = clientY + OFFSET + height < window.innerHeight;
    const left = right ? clientX + OFFSET : clientX - OFFSET - width;
    const top = below ? clientY + OFFSET : clientY - OFFSET - height;
    const [x, y] = [Math.max(4, left), Math.max(4, top)];
    this.box.style.transform = `translate(${x}px, ${y}px)`;
  }

  hide(): void {
    this.box.hidden = true;
  }

  dispose(): void {
    this.box.remove();
  }
}

/** A line of a tooltip: an optional colour, a name, a value. */
export function tooltipRow(name: string, value: string, color?: string): HTMLElement {
  const mark = color
    ? h("i", { class: "swatch", style: `background: ${color}` })
    : null;
  return h(
    "div",
    { class: "tooltip-row" },
    mark,
    h("span", {}, name),
    h("b", {}, value),
  );
}

export function tooltipTitle(text: string): HTMLElement {
  return h("div", { class: "tooltip-title" }, text);
}
