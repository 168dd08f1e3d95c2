/** Numbers to text, one way for the whole viewer. In: numbers. Out: short strings. */

const COUNT = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
const BINARY_UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];
const DECIMAL_UNITS = ["", "k", "M", "G", "T", "P", "E"];

/** Three significant digits, as 9.87, 98.7 or 987. */
function threeDigits(value: number): string {
  const digits = value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  return value.toFixed(digits);
}

/** A value in the largest unit that leaves at least 1 of it. */
function inUnits(
  value: number,
  base: number,
  units: readonly string[],
  render: (rest: number) => string,
): string {
  let rest = Math.abs(value);
  let power = 0;
  // A value that would print as the base itself belongs to the next unit.
  while (rest >= base - 0.05 && power < units.length - 1) {
    rest /= base;
    power += 1;
  }
  const sign = value < 0 ? "−" : "";
  const digits = Number.isInteger(rest) ? COUNT.format(rest) : render(rest);
  return `${sign}${digits} ${units[power] ?? ""}`.trim();
}

/** 1,234,567. */
export function formatCount(value: number): string {
  return COUNT.format(value);
}

/** 1.23 M: for axes and tiles of figures, where the exact count does not matter. */
export function formatCompact(value: number): string {
  return inUnits(value, 1000, DECIMAL_UNITS, threeDigits);
}

/** 623.5 KiB, as the texts of the report have it. */
export function formatBytes(value: number): string {
  return inUnits(value, 1024, BINARY_UNITS, (rest) => rest.toFixed(1));
}

/** 12.3 % of a whole given as 0 to 1. */
export function formatShare(share: number): string {
  const percent = share * 100;
  if (percent > 0 && percent < 0.05) return "<0.1 %";
  return `${percent.toFixed(1)} %`;
}

/** 1.85 GHz. */
export function formatHertz(value: number): string {
  return `${formatCompact(value)}Hz`;
}

const TIME_UNITS: readonly (readonly [nanoseconds: number, name: string])[] = [
  [1e9, "s"],
  [1e6, "ms"],
  [1e3, "µs"],
  [1, "ns"],
];

/** The largest unit not above `nanoseconds`; the smallest unit below all. */
function timeUnit(nanoseconds: number): readonly [number, string] {
  return TIME_UNITS.find(([unit]) => nanoseconds >= unit * 0.9995) ?? [1, "ns"];
}

/** The wall time of so many cycles, or nothing when the clock is unknown. */
export function formatDuration(cycles: number, clockHz: number): string {
  if (clockHz <= 0) return "";
  const nanoseconds = (cycles / clockHz) * 1e9;
  const [unit, name] = timeUnit(nanoseconds);
  return `${nanoseconds === 0 ? "0" : threeDigits(nanoseconds / unit)} ${name}`;
}

/** A tick of a time axis whose ticks are `step` apart: all have one unit. */
export function formatTick(cycles: number, step: number, clockHz: number): string {
  if (clockHz <= 0) return formatCompact(cycles);
  const [unit, name] = timeUnit((step / clockHz) * 1e9);
  const value = ((cycles / clockHz) * 1e9) / unit;
  return `${COUNT.format(Math.round(value))} ${name}`;
}

/** Cycles with their wall time: “12,345 cycles (6.67 µs)”. */
export function formatCycles(cycles: number, clockHz: number): string {
  const duration = formatDuration(cycles, clockHz);
  return `${formatCount(cycles)} cycles${duration ? ` (${duration})` : ""}`;
}

/** “1 tile”, “2 tiles”. */
export function plural(count: number, noun: string): string {
  return `${formatCount(count)} ${noun}${count === 1 ? "" : "s"}`;
}

/** `control_code` or `controlCode` as “Control code”. */
export function formatLabel(identifier: string): string {
  const words = identifier
    .replace(/([a-z])([A-Z])/g, "$1 $2")
    .replaceAll("_", " ")
    .toLowerCase();
  return words.charAt(0).toUpperCase() + words.slice(1);
}
