/** A canvas that keeps the width of its host and is sharp on every screen. */

import { h } from "../element";

/** Draws on `context` in CSS pixels. */
export type Paint = (context: CanvasRenderingContext2D, width: number) => void;

export class Surface {
  readonly canvas: HTMLCanvasElement;
  private readonly observer: ResizeObserver;
  private frame = 0;
  private width = 0;

  /** `heightFor` says how high the drawing is for a width. */
  constructor(
    host: HTMLElement,
    label: string,
    private readonly heightFor: (width: number) => number,
    private readonly paint: Paint,
  ) {
    this.canvas = h("canvas", { class: "surface", role: "img", "aria-label": label });
    host.append(this.canvas);
    this.observer = new ResizeObserver(() => this.fit(host.clientWidth));
    this.observer.observe(host);
  }

  /** Paints again before the next frame, however often it is called. */
  redraw(): void {
    if (this.frame === 0) this.frame = requestAnimationFrame(() => this.draw());
  }

  dispose(): void {
    this.observer.disconnect();
    cancelAnimationFrame(this.frame);
  }

  private fit(width: number): void {
    if (width === 0 || width === this.width) return;
    this.width = width;
    this.draw();
  }

  private draw(): void {
    this.frame = 0;
    if (this.width === 0) return;
    const ratio = window.devicePixelRatio || 1;
    const height = this.heightFor(this.width);
    this.canvas.style.height = `${height}px`;
    this.canvas.width = Math.round(this.width * ratio);
    this.canvas.height = Math.round(height * ratio);
    const context = this.canvas.getContext("2d");
    if (!context) return;
    context.scale(ratio, ratio);
    context.clearRect(0, 0, this.width, height);
    this.paint(context, this.width);
  }
}
