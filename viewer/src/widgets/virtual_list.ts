/**
 * A list that holds any number of rows but draws only those in sight.
 *
 * In: rows and a function that draws one. Out: a scrollable element with keyboard
 * selection; ten thousand rows cost as much as fifty.
 */

import { h } from "../element";

const OVERSCAN = 8;

export interface VirtualListSpec<Row> {
  readonly label: string;
  /** Stays on top while the rows scroll. */
  readonly head: HTMLElement;
  readonly rowHeight: number;
  readonly renderRow: (row: Row) => HTMLElement;
  readonly onSelect: (row: Row) => void;
}

export class VirtualList<Row> {
  readonly element: HTMLElement;
  private readonly body: HTMLElement;
  private rows: readonly Row[] = [];
  private selected = -1;
  private readonly observer: ResizeObserver;

  constructor(private readonly spec: VirtualListSpec<Row>) {
    const keydown = (event: Event): void => this.press(event as KeyboardEvent);
    const click = (event: Event): void => this.click(event);
    this.body = h("div", {
      class: "rows",
      role: "listbox",
      tabindex: "0",
      "aria-label": spec.label,
      on: { keydown, click },
    });
    const scroll = (): void => this.render();
    this.element = h(
      "div",
      { class: "virtual-list", on: { scroll } },
      spec.head,
      this.body,
    );
    this.observer = new ResizeObserver(() => this.render());
    this.observer.observe(this.element);
  }

  /** Shows `rows` from the top; `selected` is the row to mark, if it is there. */
  setRows(rows: readonly Row[], selected: Row | null): void {
    this.rows = rows;
    this.selected = selected === null ? -1 : rows.indexOf(selected);
    this.body.style.height = `${rows.length * this.spec.rowHeight}px`;
    this.element.scrollTop = 0;
    this.render();
  }

  dispose(): void {
    this.observer.disconnect();
  }

  private render(): void {
    const { rowHeight } = this.spec;
    const { scrollTop } = this.element;
    const first = Math.max(0, Math.floor(scrollTop / rowHeight) - OVERSCAN);
    const last = Math.min(
      this.rows.length,
      Math.ceil((scrollTop + this.room()) / rowHeight) + OVERSCAN,
    );
    const shown: HTMLElement[] = [];
    for (let index = first; index < last; index += 1) shown.push(this.rowAt(index));
    this.body.replaceChildren(...shown);
  }

  /** The height in which rows are seen. */
  private room(): number {
    return this.element.clientHeight - this.spec.head.offsetHeight;
  }

  private rowAt(index: number): HTMLElement {
    const element = this.spec.renderRow(this.rows[index] as Row);
    element.id = `row-${index}`;
    element.setAttribute("role", "option");
    element.setAttribute("aria-selected", String(index === this.selected));
    element.setAttribute("aria-setsize", String(this.rows.length));
    element.setAttribute("aria-posinset", String(index + 1));
    element.dataset["index"] = String(index);
    element.style.top = `${index * this.spec.rowHeight}px`;
    element.style.height = `${this.spec.rowHeight}px`;
    return element;
  }

  private click(event: Event): void {
    const row = (event.target as HTMLElement).closest<HTMLElement>("[data-index]");
    if (row) this.select(Number(row.dataset["index"]));
  }

  private press(event: KeyboardEvent): void {
    const page = Math.floor(this.room() / this.spec.rowHeight);
    const moves: Record<string, number> = {
      ArrowDown: this.selected + 1,
      ArrowUp: this.selected - 1,
      PageDown: this.selected + page,
      PageUp: this.selected - page,
      Home: 0,
      End: this.rows.length - 1,
    };
    const index = moves[event.key];
    if (index === undefined || this.rows.length === 0) return;
    event.preventDefault();
    this.select(Math.min(Math.max(index, 0), this.rows.length - 1));
  }

  private select(index: number): void {
    this.selected = index;
    this.reveal(index);
    this.render();
    this.body.setAttribute("aria-activedescendant", `row-${index}`);
    this.spec.onSelect(this.rows[index] as Row);
  }

  private reveal(index: number): void {
    const top = index * this.spec.rowHeight;
    const bottom = top + this.spec.rowHeight;
    const { scrollTop } = this.element;
    if (top < scrollTop) this.element.scrollTop = top;
    else if (bottom > scrollTop + this.room()) {
      this.element.scrollTop = bottom - this.room();
    }
  }
}
