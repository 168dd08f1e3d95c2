/**
 * Timeline: what every chip does when, as tracks of slices coloured by phase.
 *
 * Pan by dragging or A and D, zoom with the wheel or W and S, as in Perfetto. The
 * part in sight is in the address bar, so a link shows what its sender saw.
 */

import type { Slice, ViewData } from "../data";
import { h } from "../element";
import { formatCount, formatCycles, formatDuration } from "../format";
import { TimeScale, type TimeSpan } from "../scale";
import { cssColor, phaseVariable } from "../theme";
import { buildTracks, wholeSpan, type Track } from "../tracks";
import type { View, ViewContext } from "../view";
import { card, swatch } from "../widgets/controls";
import { Surface } from "../widgets/surface";
import { Tooltip, tooltipRow, tooltipTitle } from "../widgets/tooltip";
import {
  NAME_WIDTH,
  paintTracks,
  sliceAt,
  tracksHeight,
} from "../widgets/track_painter";

const SHORTEST_CYCLES = 20;
const KEY_ZOOM = 1.5;
const KEY_PAN = 120;
/** A press that moves less than this is a click. */
const CLICK_PIXELS = 4;

export const timeline: View = {
  id: "timeline",
  title: "Timeline",
  emptyReason: (data) =>
    data.timeline.length === 0
      ? "This report holds no timeline: nothing says when each IPU works."
      : null,
  mount(host, context) {
    const view = new TimelineView(host, context);
    return () => view.dispose();
  },
};

class TimelineView {
  private readonly data: ViewData;
  private readonly tracks: readonly Track[];
  private readonly bounds: TimeSpan;
  private readonly surface: Surface;
  private readonly tooltip = new Tooltip();
  private readonly detail = h("div", { class: "slice-detail" });
  private scale: TimeScale;
  private drag: { x: number; travelled: number } | null = null;
  private selected: Slice | null = null;

  constructor(
    host: HTMLElement,
    private readonly context: ViewContext,
  ) {
    this.data = context.data;
    this.tracks = buildTracks(this.data.timeline);
    this.bounds = wholeSpan(this.data.timeline);
    this.scale = new TimeScale(this.initialSpan(), NAME_WIDTH, 1);
    const frame = h("div", {
      class: "timeline",
      tabindex: "0",
      "aria-label": "Tracks",
    });
    const hint = h(
      "span",
      { class: "hint" },
      "Wheel or W S to zoom, drag or A D to move, 0 for all",
    );
    host.append(card("Timeline", hint, this.legend(), frame, this.detail));
    this.surface = new Surface(
      frame,
      "Tracks of all IPUs",
      () => tracksHeight(this.tracks),
      (canvas, width) => this.paint(canvas, width),
    );
    this.listen(frame, this.surface.canvas);
    this.select(null);
  }

  dispose(): void {
    this.surface.dispose();
    this.tooltip.dispose();
  }

  private initialSpan(): TimeSpan {
    const { params } = this.context;
    const span = { start: Number(params.get("from")), end: Number(params.get("to")) };
    return span.end > span.start ? span : this.bounds;
  }

  private legend(): HTMLElement {
    const phases = [...new Set(this.data.timeline.map(({ phase }) => phase))];
    const items = phases.map((phase) =>
      h(
        "span",
        { class: "legend-fixed" },
        swatch(phaseVariable(phase)),
        phase || "other",
      ),
    );
    return h("div", { class: "legend" }, ...items);
  }

  private listen(frame: HTMLElement, canvas: HTMLCanvasElement): void {
    canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    canvas.addEventListener("pointerdown", (event) => {
      this.drag = { x: event.offsetX, travelled: 0 };
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => this.move(event));
    canvas.addEventListener("pointerup", (event) => this.release(event));
    canvas.addEventListener("pointerleave", () => this.tooltip.hide());
    canvas.addEventListener("dblclick", () =>
      this.goTo(this.scale.withSpan(this.bounds)),
    );
    frame.addEventListener("keydown", (event) => this.press(event));
  }

  private goTo(scale: TimeScale): void {
    this.scale = scale.clamped(this.bounds, SHORTEST_CYCLES);
    const whole = this.scale.duration >= this.bounds.end - this.bounds.start;
    const { start, end } = this.scale.span;
    const [from, to] = whole ? ["", ""] : [start.toFixed(0), end.toFixed(0)];
    this.context.remember({ from, to });
    this.surface.redraw();
  }

  private wheel(event: WheelEvent): void {
    event.preventDefault();
    const sideways = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
    if (sideways) this.goTo(this.scale.panned(-(event.deltaX || event.deltaY)));
    else this.goTo(this.scale.zoomed(Math.exp(-event.deltaY / 400), event.offsetX));
  }

  private move(event: PointerEvent): void {
    if (this.drag) {
      const pixels = event.offsetX - this.drag.x;
      this.drag = {
        x: event.offsetX,
        travelled: this.drag.travelled + Math.abs(pixels),
      };
      this.goTo(this.scale.panned(pixels));
      this.tooltip.hide();
      return;
    }
    const slice = sliceAt(this.tracks, this.scale, event.offsetX, event.offsetY);
    if (slice === null) {
      this.tooltip.hide();
      return;
    }
    const rows = this.sliceRows(slice);
    this.tooltip.show(event.clientX, event.clientY, tooltipTitle(slice.label), ...rows);
  }

  private release(event: PointerEvent): void {
    const clicked = this.drag !== null && this.drag.travelled < CLICK_PIXELS;
    this.drag = null;
    if (clicked)
      this.select(sliceAt(this.tracks, this.scale, event.offsetX, event.offsetY));
  }

  private press(event: KeyboardEvent): void {
    const middle = NAME_WIDTH + this.scale.width / 2;
    const closer = (): TimeScale => this.scale.zoomed(KEY_ZOOM, middle);
    const wider = (): TimeScale => this.scale.zoomed(1 / KEY_ZOOM, middle);
    const earlier = (): TimeScale => this.scale.panned(KEY_PAN);
    const later = (): TimeScale => this.scale.panned(-KEY_PAN);
    const moves: Record<string, () => TimeScale> = {
      w: closer,
      s: wider,
      a: earlier,
      d: later,
      "+": closer,
      "-": wider,
      arrowleft: earlier,
      arrowright: later,
      "0": () => this.scale.withSpan(this.bounds),
    };
    const next = moves[event.key.toLowerCase()];
    if (!next || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    this.goTo(next());
  }

  private sliceRows(slice: Slice): HTMLElement[] {
    const { clock_hz } = this.data.target;
    const begin =
      formatDuration(slice.start, clock_hz) || `${formatCount(slice.start)} cycles`;
    return [
      tooltipRow("Phase", slice.phase || "other", cssColor(phaseVariable(slice.phase))),
      tooltipRow("Starts at", begin),
      tooltipRow("Lasts", formatCycles(slice.end - slice.start, clock_hz)),
      ...(slice.stage === null ? [] : [tooltipRow("Stage", String(slice.stage))]),
      ...(slice.micro_batch === null
        ? []
        : [tooltipRow("Micro-batch", String(slice.micro_batch))]),
    ];
  }

  private select(slice: Slice | null): void {
    this.selected = slice;
    this.surface.redraw();
    if (slice === null) {
      const hint = "Click a slice to keep its figures here.";
      this.detail.replaceChildren(h("p", { class: "quiet" }, hint));
      return;
    }
    const place = h("span", { class: "quiet" }, `IPU ${slice.chip}`);
    const title = h("p", { class: "scope" }, h("b", {}, slice.label), place);
    this.detail.replaceChildren(title, ...this.sliceRows(slice));
  }

  private paint(canvas: CanvasRenderingContext2D, width: number): void {
    this.scale = this.scale.withPixels(NAME_WIDTH, Math.max(1, width - NAME_WIDTH));
    paintTracks(
      canvas,
      this.tracks,
      this.scale,
      this.data.target.clock_hz,
      this.selected,
    );
  }
}
