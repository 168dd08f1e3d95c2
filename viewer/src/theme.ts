/**
 * Colours for canvases, which cannot use CSS variables by themselves.
 *
 * The palette lives in `style/palette.css`, once for light and once for dark; this file
 * only reads it. Views are mounted again when the scheme changes.
 */

/** The value of a CSS variable of the page, for instance `--ink`. */
export function cssColor(variable: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(variable).trim();
}

/** The font of canvas texts. */
export function canvasFont(pixels: number): string {
  return `${pixels}px ${getComputedStyle(document.body).fontFamily}`;
}

const NUM_CATEGORY_COLORS = 10;

/** The CSS variable of the n-th categorical colour. */
export function categoryVariable(index: number): string {
  return `--cat-${index % NUM_CATEGORY_COLORS}`;
}

const PHASES = ["forward", "backward", "update", "host", "links"];

/** The CSS variable of a phase, or of what belongs to no operation. */
export function phaseVariable(phase: string): string {
  return PHASES.includes(phase) ? `--phase-${phase}` : "--phase-other";
}

type Rgb = readonly [number, number, number];

function parseHex(color: string): Rgb {
  const value = Number.parseInt(color.slice(1), 16);
  return [(value >> 16) & 255, (value >> 8) & 255, value & 255];
}

/** A ramp through `colors` (as `#rrggbb`): 0 is the first, 1 the last. */
export function colorRamp(colors: readonly string[]): (share: number) => string {
  const stops = colors.map(parseHex);
  return (share) => {
    const place = Math.min(Math.max(share, 0), 1) * (stops.length - 1);
    const index = Math.min(Math.floor(place), stops.length - 2);
    const [from, to] = [stops[index] as Rgb, stops[index + 1] as Rgb];
    const mixed = from.map((c, i) =>
      Math.round(c + ((to[i] as number) - c) * (place - index)),
    );
    return `rgb(${mixed.join(",")})`;
  };
}

/** The ramp of the tile map, from empty to full. */
export function heatRamp(): (share: number) => string {
  return colorRamp([0, 1, 2, 3, 4].map((i) => cssColor(`--heat-${i}`)));
}
