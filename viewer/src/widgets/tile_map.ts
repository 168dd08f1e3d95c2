/**
 * The tile map: every tile a small square, coloured by how much memory it uses.
 *
 * In: one number a tile and the capacity. Out: a canvas, and calls of `onHover` and
 * `onPick` with the tile under the pointer. Tiles over capacity have the alarm colour.
 */

import type { Target } from "../data";
import { canvasFont, cssColor, heatRamp } from "../theme";
import { tileRange } from "../tiles";
import { Surface } from "./surface";

const CHIP_GAP = 20;
const LABEL_HEIGHT = 20;
const WIDE = 2.4;
const MAX_CELL = 14;
const MAX_HEIGHT = 560;
/** Cells from this size on have a gap between them. */
const MIN_CELL_WITH_GAP = 5;

/** Where each chip's grid lies, in CSS pixels. */
export interface MapLayout {
  readonly columns: number;
  readonly rows: number;
  readonly cell: number;
  readonly perRow: number;
  readonly height: number;
}

/** Columns of a chip's grid: about `WIDE` times wider than high, full if possible. */
export function gridColumns(numTiles: number): number {
  const wish = Math.sqrt(numTiles * WIDE);
  let best = Math.ceil(wish);
  for (let columns = Math.ceil(wish * 0.7); columns <= wish * 1.35; columns += 1) {
    const fits = numTiles % columns === 0;
    const better =
      numTiles % best !== 0 || Math.abs(columns - wish) < Math.abs(best - wish);
    if (fits && better) best = columns;
  }
  return best;
}

/** The layout with the largest tiles that is not too high to be seen at once. */
export function layoutMap(
  width: number,
  numChips: number,
  tilesPerChip: number,
): MapLayout {
  const columns = gridColumns(tilesPerChip);
  const rows = Math.ceil(tilesPerChip / columns);
  const layouts = Array.from({ length: Math.min(numChips, 8) }, (_, i) =>
    layoutWith(i + 1, width, numChips, columns, rows),
  );
  const low = layouts.filter((layout) => layout.height <= MAX_HEIGHT);
  return low[0] ?? (layouts[layouts.length - 1] as MapLayout);
}

function layoutWith(
  perRow: number,
  width: number,
  numChips: number,
  columns: number,
  rows: number,
): MapLayout {
  const room = (width - (perRow - 1) * CHIP_GAP) / perRow;
  const fit = Math.min(MAX_CELL, Math.max(1, room / columns));
  // Gaps of a fractional grid would shimmer; cells without gaps may have any size.
  const cell = fit >= MIN_CELL_WITH_GAP ? Math.floor(fit) : fit;
  const height =
    Math.ceil(numChips / perRow) * (rows * cell + LABEL_HEIGHT + CHIP_GAP) - CHIP_GAP;
  return { columns, rows, cell, perRow, height };
}

export interface TileMapSpec {
  readonly target: Target;
  readonly chips: readonly number[];
  readonly values: Float64Array;
  /** The value with the darkest colour. */
  readonly full: number;
  /** Values above this get the alarm colour. */
  readonly limit: number;
  readonly picked: number | null;
}

export interface TileMapEvents {
  onHover(tile: number | null, event: MouseEvent): void;
  onPick(tile: number): void;
}

export class TileMap {
  private readonly surface: Surface;
  private spec: TileMapSpec | null = null;
  private hovered: number | null = null;

  constructor(host: HTMLElement, events: TileMapEvents) {
    this.surface = new Surface(
      host,
      "Map of tiles coloured by memory use",
      (width) => (this.spec ? this.layout(this.spec, width).height : 0),
      (context, width) => this.paint(context, width),
    );
    const canvas = this.surface.canvas;
    canvas.addEventListener("mousemove", (event) => this.hover(event, events));
    canvas.addEventListener("mouseleave", (event) => {
      this.hovered = null;
      events.onHover(null, event);
      this.surface.redraw();
    });
    canvas.addEventListener("click", () => {
      if (this.hovered !== null) events.onPick(this.hovered);
    });
  }

  show(spec: TileMapSpec): void {
    this.spec = spec;
    this.surface.redraw();
  }

  dispose(): void {
    this.surface.dispose();
  }

  private layout(spec: TileMapSpec, width: number): MapLayout {
    return layoutMap(width, spec.chips.length, spec.target.tiles_per_chip);
  }

  private hover(event: MouseEvent, events: TileMapEvents): void {
    this.hovered = this.tileAt(event.offsetX, event.offsetY);
    events.onHover(this.hovered, event);
    this.surface.redraw();
  }

  private tileAt(x: number, y: number): number | null {
    if (!this.spec) return null;
    const layout = this.layout(this.spec, this.surface.canvas.clientWidth);
    for (const [place, chip] of this.spec.chips.entries()) {
      const origin = originOf(layout, place);
      const column = Math.floor((x - origin.x) / layout.cell);
      const row = Math.floor((y - origin.y) / layout.cell);
      if (column < 0 || row < 0 || column >= layout.columns || row >= layout.rows)
        continue;
      const [first, last] = tileRange(this.spec.target, chip);
      const tile = first + row * layout.columns + column;
      return tile < last ? tile : null;
    }
    return null;
  }

  private paint(context: CanvasRenderingContext2D, width: number): void {
    if (!this.spec) return;
    const layout = this.layout(this.spec, width);
    for (const [place, chip] of this.spec.chips.entries()) {
      paintChip(context, layout, place, chip, this.spec);
    }
    this.outline(context, layout, this.spec, this.spec.picked);
    this.outline(context, layout, this.spec, this.hovered);
  }

  private outline(
    context: CanvasRenderingContext2D,
    layout: MapLayout,
    spec: TileMapSpec,
    tile: number | null,
  ): void {
    if (tile === null) return;
    const chip = Math.floor(tile / spec.target.tiles_per_chip);
    const place = spec.chips.indexOf(chip);
    if (place < 0) return;
    const { x, y } = cellOf(layout, place, tile - tileRange(spec.target, chip)[0]);
    context.strokeStyle = cssColor("--ink");
    context.lineWidth = 2;
    context.strokeRect(x - 1, y - 1, layout.cell + 1, layout.cell + 1);
  }
}

function originOf(layout: MapLayout, place: number): { x: number; y: number } {
  const column = place % layout.perRow;
  const row = Math.floor(place / layout.perRow);
  return {
    x: column * (layout.columns * layout.cell + CHIP_GAP),
    y: row * (layout.rows * layout.cell + LABEL_HEIGHT + CHIP_GAP) + LABEL_HEIGHT,
  };
}

function cellOf(
  layout: MapLayout,
  place: number,
  index: number,
): { x: number; y: number } {
  const origin = originOf(layout, place);
  return {
    x: origin.x + (index % layout.columns) * layout.cell,
    y: origin.y + Math.floor(index / layout.columns) * layout.cell,
  };
}

function paintChip(
  context: CanvasRenderingContext2D,
  layout: MapLayout,
  place: number,
  chip: number,
  spec: TileMapSpec,
): void {
  const ramp = heatRamp();
  const alarm = cssColor("--bad");
  const [first, last] = tileRange(spec.target, chip);
  const origin = originOf(layout, place);
  context.fillStyle = cssColor("--ink-2");
  context.font = canvasFont(11.5);
  context.fillText(`IPU ${chip}`, origin.x, origin.y - 7);
  const gap = layout.cell >= MIN_CELL_WITH_GAP ? 1 : 0;
  for (let tile = first; tile < last; tile += 1) {
    const value = spec.values[tile] ?? 0;
    const { x, y } = cellOf(layout, place, tile - first);
    context.fillStyle = value > spec.limit ? alarm : ramp(value / spec.full);
    const [left, top] = [Math.round(x), Math.round(y)];
    const width = Math.round(x + layout.cell) - left - gap;
    const height = Math.round(y + layout.cell) - top - gap;
    context.fillRect(left, top, width, height);
  }
}
