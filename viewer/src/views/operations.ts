/**
 * Operations: every operation by cost, to be sorted, filtered, searched and read in
 * detail. In: `operations`. Filters, order and search text are in the address bar.
 */

import type { Operation, ViewData } from "../data";
import { h, redraw, type Child } from "../element";
import { formatCount, formatShare } from "../format";
import {
  filledColumns,
  isColumn,
  isLargestFirst,
  selectOperations,
  type Column,
  type ColumnKey,
  type Query,
} from "../operation_query";
import { phaseVariable } from "../theme";
import type { View, ViewContext } from "../view";
import { bar, dropdown, swatch } from "../widgets/controls";
import { VirtualList } from "../widgets/virtual_list";
import { operationDetail } from "./operation_detail";

const ROW_HEIGHT = 34;
const DEFAULT_SORT = "cycles";

export const operations: View = {
  id: "operations",
  title: "Operations",
  emptyReason: (data) =>
    data.operations.length === 0
      ? "This report holds no operations: nothing was run or modelled."
      : null,
  mount(host, context) {
    const view = new OperationsView(host, context);
    return () => view.dispose();
  },
};

class OperationsView {
  private readonly data: ViewData;
  private readonly columns: readonly Column[];
  private readonly largestShare: number;
  private readonly list: VirtualList<Operation>;
  private readonly head = h("div", { class: "table-head" });
  private readonly count = h("span", { class: "quiet", role: "status" });
  private readonly detail = h("aside", {
    class: "card detail",
    "aria-label": "Details",
  });
  private readonly none = h(
    "p",
    { class: "table-none", hidden: true },
    "No operation matches these filters.",
  );
  private selected: Operation | null = null;

  constructor(
    host: HTMLElement,
    private readonly context: ViewContext,
  ) {
    this.data = context.data;
    this.columns = filledColumns(this.data.operations);
    this.largestShare =
      this.data.operations.reduce((max, { share }) => Math.max(max, share), 0) || 1;
    this.list = new VirtualList<Operation>({
      label: "Operations",
      head: this.head,
      rowHeight: ROW_HEIGHT,
      renderRow: (operation) => this.row(operation),
      onSelect: (operation) => this.select(operation),
    });
    const template = this.columns.map(({ width }) => width).join(" ");
    const table = h(
      "section",
      { class: "card table", style: `--template: ${template}` },
      this.list.element,
      this.none,
    );
    host.append(
      this.toolbar(),
      h("div", { class: "columns with-detail" }, table, this.detail),
    );
    this.refresh();
  }

  dispose(): void {
    this.list.dispose();
  }

  private get query(): Query {
    const { params } = this.context;
    const column = params.get("sort") ?? "";
    const sort = isColumn(column) ? column : DEFAULT_SORT;
    const order = params.get("order");
    return {
      text: params.get("text") ?? "",
      phase: params.get("phase") ?? "",
      family: params.get("family") ?? "",
      chip: params.get("chip") ?? "",
      sort,
      descending: order === null ? isLargestFirst(sort) : order === "down",
    };
  }

  private toolbar(): HTMLElement {
    const input = (event: Event): void =>
      this.remember({ text: (event.target as HTMLInputElement).value });
    const search = h("input", {
      class: "search",
      type: "search",
      placeholder: "Search name, module or line",
      "aria-label": "Search operations",
      value: this.query.text,
      on: { input },
    });
    const { phase, family, chip } = this.query;
    return h(
      "div",
      { class: "toolbar" },
      search,
      this.filter("phase", "All phases", phase, (operation) => operation.phase),
      this.filter("family", "All families", family, (operation) => operation.family),
      this.filter("chip", "All IPUs", chip, (operation) =>
        String(operation.chip ?? ""),
      ),
      this.count,
    );
  }

  /** A drop-down of the values that occur; nothing where there is no choice. */
  private filter(
    key: string,
    all: string,
    selected: string,
    valueOf: (operation: Operation) => string,
  ): HTMLElement | null {
    const values = [...new Set(this.data.operations.map(valueOf))].filter(Boolean);
    if (values.length < 2) return null;
    values.sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
    const label = (value: string): string => (key === "chip" ? `IPU ${value}` : value);
    const choices = values.map((value) => ({ value, label: label(value) }));
    return dropdown(all, [{ value: "", label: all }, ...choices], selected, (value) =>
      this.remember({ [key]: value }),
    );
  }

  private remember(changes: Record<string, string>): void {
    this.context.remember(changes);
    this.refresh();
  }

  private refresh(): void {
    const rows = selectOperations(this.data.operations, this.query);
    const all = formatCount(this.data.operations.length);
    this.count.textContent =
      rows.length === this.data.operations.length
        ? `${all} operations`
        : `${formatCount(rows.length)} of ${all}`;
    const cells = this.columns.map(({ key, label }) => this.headCell(key, label));
    redraw(this.head, ...cells);
    const kept = this.selected !== null && rows.includes(this.selected);
    if (!kept) this.select(rows[0] ?? null);
    this.list.setRows(rows, this.selected);
    this.none.hidden = rows.length > 0;
  }

  private headCell(key: ColumnKey, label: string): HTMLElement {
    const { sort, descending } = this.query;
    const active = sort === key;
    const turned = descending ? "up" : "down";
    const click = (): void =>
      this.remember({
        sort: key === DEFAULT_SORT ? "" : key,
        order: active ? turned : "",
      });
    const order = active ? (descending ? "down" : "up") : undefined;
    const title = active
      ? `Sorted ${descending ? "down" : "up"}; click to turn round`
      : `Sort by ${label.toLowerCase()}`;
    return h(
      "button",
      {
        type: "button",
        class: `cell ${key}`,
        "data-order": order,
        title,
        on: { click },
      },
      label,
    );
  }

  private row(operation: Operation): HTMLElement {
    const cells = this.columns.map(({ key }) =>
      h("span", { class: `cell ${key}` }, ...this.cell(operation, key)),
    );
    return h("div", { class: "table-row", title: operation.name }, ...cells);
  }

  private cell(operation: Operation, key: ColumnKey): Child[] {
    const { phase, share } = operation;
    const color = phaseVariable(phase);
    if (key === "cycles") return [formatCount(operation.cycles)];
    if (key === "phase") return [phase !== "" && swatch(color), phase];
    if (key !== "share") return [String(operation[key] ?? "–")];
    const percent = h("span", { class: "number" }, formatShare(share));
    return [bar(share / this.largestShare, color), percent];
  }

  private select(operation: Operation | null): void {
    this.selected = operation;
    this.detail.replaceChildren(operationDetail(operation, this.data.target.clock_hz));
  }
}
