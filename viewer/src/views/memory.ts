/**
 * Memory: what every tile holds, as a chart, as a map, and by category.
 *
 * In: the per-tile series and categories. Chip, kind of chart, hidden counters and what
 * the map shows are in the address bar; a picked tile narrows the table to that tile.
 */

import type { ViewData } from "../data";
import { h, redraw } from "../element";
import { formatBytes, formatCount, formatLabel, formatShare } from "../format";
import { categoryVariable } from "../theme";
import {
  argMax,
  categoryLayers,
  expandRuns,
  tileRange,
  type TileLayer,
} from "../tiles";
import type { View, ViewContext } from "../view";
import { Chart, type ChartSpec, type Counter } from "../widgets/chart";
import {
  card,
  chipChoices,
  dropdown,
  labelled,
  picker,
  segmented,
  swatch,
  toggle,
} from "../widgets/controls";
import { TileMap } from "../widgets/tile_map";
import { Tooltip, tooltipRow, tooltipTitle } from "../widgets/tooltip";
import { capacityLine, isNearCapacity } from "./capacity";
import { breakdown } from "./memory_breakdown";
import {
  categoryCounters,
  TOTALS,
  totalCounters,
  type TileRange,
} from "./memory_counters";

const CHART_HEIGHT = 300;
const DEFAULT_MAP = "total_including_gaps";

export const memory: View = {
  id: "memory",
  title: "Memory",
  emptyReason: (data) =>
    data.memory.series.total_including_gaps.length === 0
      ? "This report holds no memory per tile: it was recorded without its graph part."
      : null,
  mount(host, context) {
    const view = new MemoryView(host, context);
    return () => view.dispose();
  },
};

class MemoryView {
  private readonly data: ViewData;
  private readonly series: ReadonlyMap<string, Float64Array>;
  private readonly categories: readonly TileLayer[];
  private readonly hidden: Set<string>;
  private readonly chart: Chart;
  private readonly map: TileMap;
  private readonly tooltip = new Tooltip();
  private readonly table = h("div", { class: "breakdown" });
  private readonly legend = h("div", { class: "legend" });
  private readonly mapScale = h("div", { class: "ramp" });
  private pickedTile: number | null = null;

  constructor(
    host: HTMLElement,
    private readonly context: ViewContext,
  ) {
    this.data = context.data;
    this.series = new Map(
      TOTALS.map(({ key }) => [key, expandRuns(this.data.memory.series[key])]),
    );
    this.categories = categoryLayers(this.data.memory);
    this.hidden = new Set(
      (context.params.get("hide") ?? "").split(",").filter(Boolean),
    );
    const chartHost = h("div", { class: "chart" });
    const mapHost = h("div", { class: "tile-map" });
    host.append(this.toolbar(), this.chartCard(chartHost), this.lower(mapHost));
    this.chart = new Chart(chartHost);
    this.map = new TileMap(mapHost, {
      onHover: (tile, event) => this.hover(tile, event),
      onPick: (tile) => this.pick(tile),
    });
    this.refresh();
  }

  dispose(): void {
    this.chart.dispose();
    this.map.dispose();
    this.tooltip.dispose();
  }

  /** The chip to show; `null` stands for all of them. */
  private get chip(): number | null {
    const { num_chips } = this.data.target;
    if (num_chips === 1) return 0;
    const chip = Number(this.context.params.get("chip") ?? Number.NaN);
    return Number.isInteger(chip) && chip >= 0 && chip < num_chips ? chip : null;
  }

  private get range(): TileRange {
    return tileRange(this.data.target, this.chip);
  }

  private get peakBytes(): number {
    const needed = this.series.get("total_including_gaps") as Float64Array;
    return needed[argMax(needed)] ?? 0;
  }

  private get stacked(): boolean {
    return this.context.params.get("chart") === "categories";
  }

  private get mapped(): string {
    const key = this.context.params.get("map") ?? "";
    return this.layerOf(key) ? key : DEFAULT_MAP;
  }

  private layerOf(key: string): Float64Array | undefined {
    const category = this.categories.find((layer) => layer.key === key);
    return this.series.get(key) ?? category?.values;
  }

  private remember(changes: Record<string, string>): void {
    this.context.remember(changes);
    this.refresh();
  }

  private toolbar(): HTMLElement {
    const { num_chips } = this.data.target;
    const chips = Array.from({ length: num_chips }, (_, chip) => chip);
    const choices = [{ value: "", label: "All" }, ...chipChoices(chips)];
    const choose = (chip: string): void => {
      this.pickedTile = null;
      this.remember({ chip });
    };
    const chipPicker = picker("IPU", choices, String(this.chip ?? ""), choose);
    return h(
      "div",
      { class: "toolbar" },
      num_chips > 1 && labelled("IPU", chipPicker),
      labelled("Show", this.modeControl()),
    );
  }

  private modeControl(): HTMLElement {
    const modes = [
      { value: "", label: "Totals" },
      { value: "categories", label: "Categories" },
    ];
    const mode = this.stacked ? "categories" : "";
    return segmented("Show", modes, mode, (chart) => this.remember({ chart }));
  }

  private chartCard(host: HTMLElement): HTMLElement {
    const hint = h("span", { class: "hint" }, "Drag to zoom, double-click to reset");
    return card("Memory by tile", hint, this.legend, host);
  }

  private lower(mapHost: HTMLElement): HTMLElement {
    const choices = [
      ...TOTALS.map(({ key, label }) => ({ value: key as string, label })),
      ...this.categories.map(({ key }) => ({ value: key, label: formatLabel(key) })),
    ];
    const choose = (map: string): void =>
      this.remember({ map: map === DEFAULT_MAP ? "" : map });
    const control = dropdown("Coloured by", choices, this.mapped, choose);
    return h(
      "div",
      { class: "columns" },
      card("Tile map", control, mapHost, this.mapScale),
      card("By category", null, this.table),
    );
  }

  private refresh(): void {
    this.chart.show(this.stacked ? this.categoryChart() : this.totalsChart());
    this.refreshLegend();
    this.refreshMap();
    this.refreshTable();
  }

  private chartOf(counters: readonly Counter[], stacked: boolean): ChartSpec {
    const [first, last] = this.range;
    const { tiles_per_chip, num_chips } = this.data.target;
    const borders = Array.from(
      { length: num_chips - 1 },
      (_, index) => (index + 1) * tiles_per_chip,
    );
    return {
      height: CHART_HEIGHT,
      positions: Array.from({ length: last - first }, (_, i) => first + i),
      counters,
      stacked,
      xLabel: "Tile",
      formatX: formatCount,
      formatY: formatBytes,
      titleAt: (index) => this.tileTitle(first + index),
      dividers: this.chip === null ? borders : [],
      onPick: (index) => this.pick(first + index),
    };
  }

  /** Shown as the reader chose; else where the memory comes near it. */
  private get capacityShown(): boolean {
    const choice = this.context.params.get("capacity");
    if (choice !== null) return choice === "shown";
    return isNearCapacity(this.peakBytes, this.data.memory.capacity_bytes);
  }

  private capacityLines(): Counter[] {
    const [first, last] = this.range;
    const line = capacityLine(last - first, this.data.memory.capacity_bytes);
    return this.capacityShown ? [line] : [];
  }

  private totalsChart(): ChartSpec {
    const counters = totalCounters(this.series, this.hidden, this.range);
    return this.chartOf([...counters, ...this.capacityLines()], false);
  }

  private categoryChart(): ChartSpec {
    const counters = categoryCounters(this.categories, this.hidden, this.range);
    return this.chartOf([...counters, ...this.capacityLines()], true);
  }

  private refreshLegend(): void {
    const entries = this.stacked
      ? this.categories.map(({ key }, index) => ({
          key,
          label: formatLabel(key),
          color: categoryVariable(index),
        }))
      : TOTALS;
    const items = entries.map(({ key, label, color }) =>
      this.counterToggle(key, label, color),
    );
    redraw(this.legend, ...items, this.capacityToggle());
  }

  private counterToggle(key: string, label: string, color: string): HTMLElement {
    const shown = !this.hidden.has(key);
    return toggle(swatch(color), label, shown, () => {
      if (shown) this.hidden.add(key);
      else this.hidden.delete(key);
      this.remember({ hide: [...this.hidden].join(",") });
    });
  }

  private capacityToggle(): HTMLElement {
    const label = `Capacity ${formatBytes(this.data.memory.capacity_bytes)}`;
    const shown = this.capacityShown;
    return toggle(h("i", { class: "dash" }), label, shown, () =>
      this.remember({ capacity: shown ? "hidden" : "shown" }),
    );
  }

  private refreshMap(): void {
    const { target } = this.data;
    const { capacity_bytes } = this.data.memory;
    const values = this.layerOf(this.mapped) as Float64Array;
    const largest = Math.max(1, values[argMax(values)] ?? 0);
    const toCapacity = isNearCapacity(largest, capacity_bytes);
    const full = toCapacity ? capacity_bytes : largest;
    const all = Array.from({ length: target.num_chips }, (_, chip) => chip);
    const chips = this.chip === null ? all : [this.chip];
    this.map.show({
      target,
      chips,
      values,
      full,
      limit: capacity_bytes,
      picked: this.pickedTile,
    });
    const over = h("span", { class: "legend-fixed" }, swatch("--bad"), "over capacity");
    this.mapScale.replaceChildren(
      h("span", {}, "0"),
      h("i", { class: "ramp-bar" }),
      h("span", {}, `${formatBytes(full)} (${toCapacity ? "capacity" : "largest"})`),
      ...(largest > capacity_bytes ? [over] : []),
    );
  }

  private tileTitle(tile: number): string {
    const chip = Math.floor(tile / this.data.target.tiles_per_chip);
    return `Tile ${formatCount(tile)} · IPU ${chip}`;
  }

  private hover(tile: number | null, event: MouseEvent): void {
    if (tile === null) {
      this.tooltip.hide();
      return;
    }
    const value = (this.layerOf(this.mapped) as Float64Array)[tile] ?? 0;
    const total = TOTALS.find(({ key }) => key === this.mapped);
    const share = value / Math.max(1, this.data.memory.capacity_bytes);
    this.tooltip.show(
      event.clientX,
      event.clientY,
      tooltipTitle(this.tileTitle(tile)),
      tooltipRow(total?.label ?? formatLabel(this.mapped), formatBytes(value)),
      tooltipRow("Of capacity", formatShare(share)),
    );
  }

  private pick(tile: number): void {
    this.pickedTile = this.pickedTile === tile ? null : tile;
    this.refreshMap();
    this.refreshTable();
  }

  private refreshTable(): void {
    const tile = this.pickedTile;
    const range: TileRange = tile === null ? this.range : [tile, tile + 1];
    const all = this.chip === null ? "All tiles" : `All tiles of IPU ${this.chip}`;
    const scope = tile === null ? all : this.tileTitle(tile);
    const hint =
      tile === null
        ? "Click a tile to see it alone."
        : "Click it again to see all tiles.";
    this.table.replaceChildren(
      h(
        "p",
        { class: "scope" },
        h("b", {}, scope),
        h("span", { class: "quiet" }, hint),
      ),
      ...breakdown(this.categories, range),
    );
  }
}
