/**
 * Line and area charts over uPlot, in the look of the viewer.
 *
 * In: a `ChartSpec`, plain data. Out: a chart that follows its host's width, zooms by
 * dragging, resets by double click, and shows a tooltip under the cursor.
 */

import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { canvasFont, cssColor } from "../theme";
import { Tooltip, tooltipRow, tooltipTitle } from "./tooltip";

export interface Counter {
  readonly label: string;
  readonly values: ArrayLike<number>;
  /** CSS variable of the line. */
  readonly color: string;
  /** Fill down to zero with the line's colour at this opacity. */
  readonly fill?: number;
  readonly dash?: readonly number[];
  readonly width?: number;
  /** What the tooltip shows, where it differs from the drawn value (stacks). */
  readonly shown?: ArrayLike<number>;
}

export interface Marker {
  readonly index: number;
  readonly value: number;
  readonly text: string;
}

export interface ChartSpec {
  readonly height: number;
  readonly positions: ArrayLike<number>;
  readonly counters: readonly Counter[];
  /** Each counter is filled down to the next one, not to zero. */
  readonly stacked?: boolean;
  readonly xLabel: string;
  readonly formatX: (position: number) => string;
  readonly formatY: (value: number) => string;
  /** The heading of the tooltip. */
  readonly titleAt: (index: number) => string;
  readonly marker?: Marker;
  /** Vertical hairlines, for instance between chips. */
  readonly dividers?: readonly number[];
  readonly maxY?: number;
  readonly onPick?: (index: number) => void;
}

/** Steps of a byte axis: 1, 2, 4, ... so that labels are whole KiB and MiB. */
const BINARY_STEPS = Array.from({ length: 44 }, (_, power) => 2 ** power);

export class Chart {
  private plot: uPlot | null = null;
  private spec: ChartSpec | null = null;
  private readonly tooltip = new Tooltip();
  private readonly observer: ResizeObserver;

  constructor(private readonly host: HTMLElement) {
    this.observer = new ResizeObserver(() => this.fit());
    this.observer.observe(host);
  }

  show(spec: ChartSpec): void {
    this.spec = spec;
    this.plot?.destroy();
    this.plot = null;
    this.fit();
  }

  dispose(): void {
    this.observer.disconnect();
    this.plot?.destroy();
    this.tooltip.dispose();
  }

  private fit(): void {
    const width = this.host.clientWidth;
    if (!this.spec || width === 0) return;
    if (!this.plot) this.plot = this.create(this.spec, width);
    else if (this.plot.width !== width) {
      this.plot.setSize({ width, height: this.spec.height });
    }
  }

  private create(spec: ChartSpec, width: number): uPlot {
    const columns = [spec.positions, ...spec.counters.map((c) => c.values)];
    const plot = new uPlot(
      chartOptions(spec, width, (u) => this.follow(u)),
      columns.map((column) => Array.from(column)) as uPlot.AlignedData,
      this.host,
    );
    plot.over.addEventListener("mouseleave", () => this.tooltip.hide());
    plot.over.addEventListener("click", () => {
      if (typeof plot.cursor.idx === "number") spec.onPick?.(plot.cursor.idx);
    });
    return plot;
  }

  private follow(plot: uPlot): void {
    const { idx, left, top } = plot.cursor;
    if (!this.spec || typeof idx !== "number" || (left ?? -1) < 0) {
      this.tooltip.hide();
      return;
    }
    const frame = plot.over.getBoundingClientRect();
    this.tooltip.show(
      frame.left + (left ?? 0),
      frame.top + (top ?? 0),
      tooltipTitle(this.spec.titleAt(idx)),
      ...tooltipRows(this.spec, idx),
    );
  }
}

function tooltipRows(spec: ChartSpec, index: number): HTMLElement[] {
  return spec.counters.map((counter) => {
    const value = (counter.shown ?? counter.values)[index] ?? 0;
    return tooltipRow(counter.label, spec.formatY(value), cssColor(counter.color));
  });
}

function chartOptions(
  spec: ChartSpec,
  width: number,
  follow: (plot: uPlot) => void,
): uPlot.Options {
  return {
    width,
    height: spec.height,
    padding: [12, 8, 0, 0],
    legend: { show: false },
    cursor: { points: { show: false }, drag: { x: true, y: false }, y: false },
    scales: {
      x: { time: false },
      y: { range: (_u, _min, max) => [0, topOf(spec, max)] },
    },
    axes: [xAxis(spec), yAxis(spec)],
    series: [{}, ...spec.counters.map(lineOf)],
    bands: spec.stacked ? bandsOf(spec.counters) : [],
    hooks: {
      setCursor: [follow],
      drawClear: [(u) => drawDividers(u, spec.dividers ?? [])],
      draw: [(u) => drawMarker(u, spec.marker)],
    },
  };
}

function topOf(spec: ChartSpec, max: number | null): number {
  const top = Math.max(max ?? 0, spec.maxY ?? 0);
  return top > 0 ? top * 1.08 : 1;
}

/** Bands between neighbours that are filled; uPlot counts the x values as series 0. */
function bandsOf(counters: readonly Counter[]): uPlot.Band[] {
  return counters.flatMap(({ fill }, i): uPlot.Band[] =>
    fill && counters[i + 1]?.fill ? [{ series: [i + 1, i + 2] }] : [],
  );
}

function lineOf(counter: Counter): uPlot.Series {
  const color = cssColor(counter.color);
  return {
    label: counter.label,
    stroke: color,
    width: counter.width ?? 1.5,
    points: { show: false },
    ...(counter.dash ? { dash: [...counter.dash] } : {}),
    ...(counter.fill ? { fill: withAlpha(color, counter.fill) } : {}),
  };
}

function withAlpha(hex: string, alpha: number): string {
  const byte = Math.round(alpha * 255);
  return `${hex}${byte.toString(16).padStart(2, "0")}`;
}

function axisLook(): uPlot.Axis {
  const line = cssColor("--line");
  return {
    stroke: cssColor("--ink-3"),
    font: canvasFont(11),
    labelFont: canvasFont(11),
    grid: { stroke: line, width: 1 },
    ticks: { show: false },
    gap: 8,
  };
}

function xAxis(spec: ChartSpec): uPlot.Axis {
  return {
    ...axisLook(),
    label: spec.xLabel,
    labelSize: 20,
    size: 28,
    space: 80,
    grid: { show: false },
    incrs: [1, 2, 5]
      .flatMap((f) => [0, 1, 2, 3, 4, 5, 6].map((p) => f * 10 ** p))
      .sort((a, b) => a - b),
    values: (_u, splits) => splits.map(spec.formatX),
  };
}

function yAxis(spec: ChartSpec): uPlot.Axis {
  return {
    ...axisLook(),
    size: 72,
    space: 44,
    incrs: BINARY_STEPS,
    values: (_u, splits) =>
      splits.map((value) => (value === 0 ? "0" : spec.formatY(value))),
  };
}

function drawDividers(plot: uPlot, positions: readonly number[]): void {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.strokeStyle = cssColor("--line-strong");
  ctx.lineWidth = 1;
  for (const position of positions) {
    const x = Math.round(plot.valToPos(position, "x", true)) + 0.5;
    if (x < bbox.left || x > bbox.left + bbox.width) continue;
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
  }
  ctx.restore();
}

function drawMarker(plot: uPlot, marker: Marker | undefined): void {
  const position = marker && plot.data[0][marker.index];
  if (marker === undefined || position === undefined) return;
  const { ctx, bbox } = plot;
  const x = plot.valToPos(position, "x", true);
  const y = plot.valToPos(marker.value, "y", true);
  if (x < bbox.left || x > bbox.left + bbox.width) return;
  ctx.save();
  ctx.fillStyle = cssColor("--ink");
  ctx.strokeStyle = cssColor("--surface");
  // The text goes to whichever side of the point has room for it.
  drawMarkerText(ctx, marker.text, x, y, x > bbox.left + bbox.width / 2);
  ctx.lineWidth = 2 * uPlot.pxRatio;
  ctx.beginPath();
  ctx.arc(x, y, 5 * uPlot.pxRatio, 0, 2 * Math.PI);
  ctx.stroke();
  ctx.fill();
  ctx.restore();
}

function drawMarkerText(
  ctx: CanvasRenderingContext2D,
  text: string,
  x: number,
  y: number,
  onLeft: boolean,
): void {
  const ratio = uPlot.pxRatio;
  ctx.font = canvasFont(11.5 * ratio);
  ctx.textAlign = onLeft ? "right" : "left";
  ctx.textBaseline = "middle";
  ctx.lineJoin = "round";
  ctx.lineWidth = 4 * ratio;
  const textX = x + (onLeft ? -11 : 11) * ratio;
  const textY = y - 7 * ratio;
  ctx.strokeText(text, textX, textY);
  ctx.fillText(text, textX, textY);
}
