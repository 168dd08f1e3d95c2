/**
 * Draws tracks on a canvas, and finds the slice under a point of that drawing.
 *
 * In: `Track`s and a `TimeScale`. Out: pixels. All sizes of the drawing are here.
 */

import type { Slice } from "../data";
import { formatTick } from "../format";
import type { TimeScale } from "../scale";
import { canvasFont, cssColor, phaseVariable } from "../theme";
import { findSlice, visitVisible, type Track, type TrackRow } from "../tracks";

/** Pixels left of the time scale, for the names of the tracks. */
export const NAME_WIDTH = 64;

const AXIS_HEIGHT = 30;
const ROW_HEIGHT = 28;
const SLICE_HEIGHT = 25;
const TRACK_GAP = 14;
const TICK_SPACING = 110;
const LABEL_PADDING = 4;

function trackHeight(track: Track): number {
  return track.rows.length * ROW_HEIGHT + TRACK_GAP;
}

export function tracksHeight(tracks: readonly Track[]): number {
  return tracks.reduce((height, track) => height + trackHeight(track), AXIS_HEIGHT);
}

export function sliceAt(
  tracks: readonly Track[],
  scale: TimeScale,
  x: number,
  y: number,
): Slice | null {
  if (x < NAME_WIDTH) return null;
  let top = AXIS_HEIGHT;
  for (const track of tracks) {
    const row = y >= top ? track.rows[Math.floor((y - top) / ROW_HEIGHT)] : undefined;
    // Half a pixel either way, so that the thinnest slices can be hit.
    if (row) return findSlice(row, scale.toTime(x), scale.duration / scale.width / 2);
    top += trackHeight(track);
  }
  return null;
}

export function paintTracks(
  canvas: CanvasRenderingContext2D,
  tracks: readonly Track[],
  scale: TimeScale,
  clockHz: number,
  selected: Slice | null,
): void {
  canvas.font = canvasFont(11);
  canvas.textBaseline = "middle";
  canvas.textAlign = "left";
  const painter = new SlicePainter(canvas, scale, selected);
  eachTrack(tracks, (track, top) => painter.paintGround(track, top));
  paintAxis(canvas, scale, clockHz, tracksHeight(tracks));
  eachTrack(tracks, (track, top) => painter.paintSlices(track, top));
}

function eachTrack(
  tracks: readonly Track[],
  visit: (track: Track, top: number) => void,
): void {
  let top = AXIS_HEIGHT;
  for (const track of tracks) {
    visit(track, top);
    top += trackHeight(track);
  }
}

/** Ticks of round times; cycles where the clock is unknown. */
function paintAxis(
  canvas: CanvasRenderingContext2D,
  scale: TimeScale,
  clockHz: number,
  height: number,
): void {
  const step = scale.tickStep(TICK_SPACING, clockHz > 0 ? clockHz / 1e9 : 1);
  const line = cssColor("--line-strong");
  const ink = cssColor("--ink-3");
  for (const time of scale.ticks(step)) {
    const x = Math.round(scale.toPixels(time));
    canvas.fillStyle = line;
    canvas.globalAlpha = 0.5;
    canvas.fillRect(x, 4, 1, height - 4);
    canvas.globalAlpha = 1;
    const text = formatTick(time, step, clockHz);
    if (x + 6 + canvas.measureText(text).width > scale.left + scale.width) continue;
    canvas.fillStyle = ink;
    canvas.fillText(text, x + 6, 12);
  }
}

/** Paints with colours looked up once a frame, not once a slice. */
class SlicePainter {
  private readonly colors = new Map<string, string>();
  private readonly ink = cssColor("--ink");
  private readonly nameInk = cssColor("--ink-2");
  private readonly idle = cssColor("--sunken");
  private readonly labelInk = cssColor("--on-slice");

  constructor(
    private readonly canvas: CanvasRenderingContext2D,
    private readonly scale: TimeScale,
    private readonly selected: Slice | null,
  ) {}

  /** The name of a track, and its rows as they look where the chip is idle. */
  paintGround(track: Track, top: number): void {
    const { canvas, scale } = this;
    canvas.fillStyle = this.nameInk;
    canvas.fillText(`IPU ${track.chip}`, 0, top + SLICE_HEIGHT / 2);
    canvas.fillStyle = this.idle;
    for (const index of track.rows.keys()) {
      canvas.fillRect(NAME_WIDTH, top + index * ROW_HEIGHT, scale.width, SLICE_HEIGHT);
    }
  }

  paintSlices(track: Track, top: number): void {
    const { canvas, scale } = this;
    canvas.save();
    canvas.beginPath();
    canvas.rect(NAME_WIDTH, top, scale.width, trackHeight(track));
    canvas.clip();
    for (const [index, row] of track.rows.entries()) {
      this.paintRow(row, top + index * ROW_HEIGHT);
    }
    canvas.restore();
  }

  private paintRow(row: TrackRow, y: number): void {
    const { canvas, scale } = this;
    visitVisible(row, scale, (slice, left, width) => {
      canvas.fillStyle = this.colorOf(slice.phase);
      canvas.fillRect(left, y, width > 4 ? width - 1 : width, SLICE_HEIGHT);
      this.paintLabel(slice, left, y, width);
      if (slice === this.selected) this.outline(left, y, width);
    });
  }

  private colorOf(phase: string): string {
    const known = this.colors.get(phase);
    if (known !== undefined) return known;
    const color = cssColor(phaseVariable(phase));
    this.colors.set(phase, color);
    return color;
  }

  private outline(left: number, y: number, width: number): void {
    this.canvas.strokeStyle = this.ink;
    this.canvas.lineWidth = 2;
    this.canvas.strokeRect(left + 1, y + 1, Math.max(1, width - 3), SLICE_HEIGHT - 2);
  }

  /** The label, or else the micro-batch alone, or nothing: whatever has room. */
  private paintLabel(slice: Slice, left: number, y: number, width: number): void {
    const from = Math.max(left, NAME_WIDTH) + LABEL_PADDING;
    const room = left + width - LABEL_PADDING - from;
    if (room < 6) return;
    const short = slice.micro_batch === null ? "" : String(slice.micro_batch);
    const text = [slice.label, short].find(
      (candidate) => this.canvas.measureText(candidate).width <= room,
    );
    if (!text) return;
    this.canvas.fillStyle = this.labelInk;
    this.canvas.fillText(text, from, y + SLICE_HEIGHT / 2 + 0.5);
  }
}
