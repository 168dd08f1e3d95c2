/** Builds DOM elements in one expression. In: tag, attributes, children. */

export type Child = Node | string | null | false;

export interface Attributes {
  readonly class?: string;
  readonly style?: string;
  readonly title?: string;
  readonly id?: string;
  readonly on?: Readonly<Record<string, (event: Event) => void>>;
  readonly [attribute: string]: unknown;
}

/** An element with attributes, listeners (under `on`) and children. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "on" || value === undefined || value === null || value === false)
      continue;
    element.setAttribute(name, value === true ? "" : String(value));
  }
  for (const [event, listener] of Object.entries(attributes.on ?? {})) {
    element.addEventListener(event, listener);
  }
  element.append(...children.filter((child): child is Node | string => isShown(child)));
  return element;
}

/** Replaces all children; the focus stays at its place among them. */
export function redraw(parent: HTMLElement, ...children: readonly HTMLElement[]): void {
  const focused = [...parent.children].indexOf(document.activeElement as Element);
  parent.replaceChildren(...children);
  children[focused]?.focus();
}

function isShown(child: Child): boolean {
  return child !== null && child !== false;
}
